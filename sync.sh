# carry my files from the shared checkout to the clone
cd /work/main
git diff -- $(cat /tmp/sym/myfiles) > /tmp/sym/my.patch
cd /tmp/sym/wt && git fetch -q origin && git reset -q --hard origin/main && (test -s /tmp/sym/my.patch && git apply /tmp/sym/my.patch || true)
for f in $(cd /work/main; git ls-files -o --exclude-standard -- $(cat /tmp/sym/myfiles)); do mkdir -p $(dirname $f); cp /work/main/$f $f; done
