package gockworld

import (
	"fmt"
	"net/url"
	"strings"
)

// origin is what a client has built in: scheme, host, port and the path before the scenario's.
type origin struct {
	scheme, host, port string
	base               string // "" or "/v1"
}

func parseOrigin(text string) (origin, error) {
	wrong := func(format string, args ...any) (origin, error) {
		return origin{}, fmt.Errorf("gockworld: origin %q: %s", text, fmt.Sprintf(format, args...))
	}
	if text == "" {
		return wrong("it is empty; it is what the client has built in, such as https://api.example.com")
	}
	if !strings.Contains(text, "://") {
		return wrong("it has no scheme; did you mean %q?", "https://"+text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("%v", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong("the scheme is %q; http and https are known", u.Scheme)
	case u.Hostname() == "":
		return wrong("it has no host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return wrong("it is a scheme, a host and perhaps a base path, and nothing else")
	case u.RawPath != "":
		return wrong("its base path holds escapes")
	}
	return origin{scheme: u.Scheme, host: strings.ToLower(u.Hostname()), port: portOf(u), base: strings.TrimRight(u.Path, "/")}, nil
}

// portOf returns the port of u, or that of its scheme.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// holds reports whether u is below the origin: the very host, and not one that contains its name.
func (o origin) holds(u *url.URL) bool {
	return u.Scheme == o.scheme && strings.EqualFold(u.Hostname(), o.host) && portOf(u) == o.port &&
		(o.base == "" || strings.HasPrefix(u.Path, o.base+"/"))
}

// String returns the origin as a client would write it, without a slash at the end.
func (o origin) String() string {
	host := o.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if o.port != portOf(&url.URL{Scheme: o.scheme}) {
		host += ":" + o.port
	}
	return o.scheme + "://" + host + o.base
}

// moved returns u, which the origin holds, as it is on the server at to.
func (o origin) moved(u, to *url.URL) *url.URL {
	out := *u
	out.Scheme, out.Host = to.Scheme, to.Host
	out.Path = strings.TrimPrefix(u.Path, o.base)
	out.RawPath = strings.TrimPrefix(u.RawPath, o.base)
	return &out
}
