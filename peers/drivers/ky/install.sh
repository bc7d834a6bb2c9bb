#!/bin/sh
# Installs ky for this driver, into this folder, in the versions of package-lock.json. Needs Node 20 or later.
set -eu
cd "$(dirname "$0")"
npm ci --ignore-scripts --no-audit --no-fund
