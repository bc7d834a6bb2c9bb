package history

// IdempotentMethod reports whether repeating a request of that method is meant to have the effect of one:
// RFC 9110 §9.2.2, RFC 10008 (QUERY), and what the IANA registry of methods marks so
// (https://www.iana.org/assignments/http-methods). A method that is not registered is not idempotent until
// the caller says so. Methods are case-sensitive (RFC 9110 §9.1).
func IdempotentMethod(method string) bool {
	switch method {
	case "PUT", "DELETE",
		"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "LABEL", "LINK", "MERGE", "MKACTIVITY",
		"MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PROPPATCH", "REBIND", "UNBIND",
		"UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL":
		return true
	}
	return SafeMethod(method)
}

// SafeMethod reports whether the method asks for no effect at all (RFC 9110 §9.2.1, RFC 10008, and the IANA
// registry).
func SafeMethod(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PRI", "PROPFIND", "REPORT", "SEARCH":
		return true
	}
	return false
}
