// Command retrychaos runs HTTP clients through scenarios of failure and judges their retries.
// See `retrychaos --help`.
package main

import "github.com/retrychaos/retrychaos/cmd/retrychaos/cli"

func main() { cli.Main() }
