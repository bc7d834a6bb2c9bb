package reports

// ColorWanted decides whether to write colour. The flag (always, never, auto or "") comes first; then
// NO_COLOR, set to anything but the empty string, says no; then FORCE_COLOR says yes, or no where it is 0
// or false; then colour is for terminals that are not dumb. Nothing is ever said by colour alone.
func ColorWanted(flag string, env func(string) string, isTerminal bool) bool {
	switch flag {
	case "always":
		return true
	case "never":
		return false
	}
	if env("NO_COLOR") != "" {
		return false
	}
	switch env("FORCE_COLOR") {
	case "":
		return isTerminal && env("TERM") != "dumb"
	case "0", "false":
		return false
	}
	return true
}

// painter colours text, or leaves it as it is.
type painter bool

func (p painter) paint(code, s string) string {
	if !p || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p painter) bold(s string) string { return p.paint("1", s) }
func (p painter) dim(s string) string  { return p.paint("2", s) }

const (
	red    = "31"
	green  = "32"
	yellow = "33"
)
