#!/bin/sh
# Installs what this driver needs from Debian 12. Another series than the one it was tested with is an error.
set -eu
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
pin() {
	case $(dpkg-query -W -f '${Version}' "$1") in
	"$2"*) ;;
	*) echo "$1 is $(dpkg-query -W -f '${Version}' "$1"), and this driver was tested with $2*" >&2; exit 1 ;;
	esac
}
$sudo apt-get update -qq
$sudo apt-get install -y --no-install-recommends python3 curl
pin curl 7.88.
