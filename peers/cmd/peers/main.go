// Command peers is retrychaos with the third-party clients of this module added: those in Go, and those of other
// languages behind the drivers of its folder drivers.
package main

import (
	"fmt"
	"os"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/peers"
)

func main() {
	var list []cli.NamedClient
	for _, c := range peers.All() {
		list = append(list, cli.NamedClient{Client: c, Doc: c.Name + " " + c.Version + ", with its defaults"})
	}
	drivers, err := cli.Drivers(peers.DriverFolder())
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(2)
	}
	cli.Main(append(list, drivers...)...)
}
