// Package browser tests the HTML report in a real browser, headless. It is a module of its own, so that what drives
// the browser never reaches the go.sum of anyone who uses reports.
package browser
