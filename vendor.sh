#!/bin/sh
# Renews the live page's libraries from npm: their minified ES modules, each with its licence.
set -eu
PREACT=10.29.8 HTM=3.1.1
here=$(cd "$(dirname "$0")" && pwd)/moot/plugins/web/static/vendor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for package in "preact@$PREACT" "htm@$HTM"; do
  name=${package%@*}
  npm pack --silent "$package" >/dev/null
  mkdir "$name"
  tar xzf "$name"-*.tgz -C "$name" --strip-components=1
  cp "$name/LICENSE" "$here/$name.LICENSE"
done
modules() { sed -e '/^\/\/# sourceMappingURL/d' -e 's#from"preact"#from"./preact.module.js"#' "$1"; }
modules preact/dist/preact.module.js >"$here/preact.module.js"
modules preact/hooks/dist/hooks.module.js >"$here/hooks.module.js"
modules htm/dist/htm.module.js >"$here/htm.module.js"
