// Command peers is retrychaos with the third-party clients of this module added.
package main

import (
	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/peers"
)

func main() {
	var list []cli.NamedClient
	for _, c := range peers.All() {
		list = append(list, cli.NamedClient{Client: c, Doc: c.Name + " " + c.Version + ", with its defaults"})
	}
	cli.Main(list...)
}
