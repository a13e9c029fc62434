# The few commands of every day. The work is done by scripts/, and CONTRIBUTING.md says when to use
# which command.
.PHONY: build docs install package quick verify coverage lint format generate

build: # bin/ and lib/
	scripts/build

docs: # build/docs: the documents for a browser
	scripts/docs

install: build # into PREFIX (/usr/local), below DESTDIR
	PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install

package: # build/packages/*.deb and *.rpm
	scripts/package

quick: # before every commit: format, linters, warnings of C, import rules, the pure tests that a change reaches
	scripts/test quick

verify: # before a release: everything
	scripts/test --long

coverage: build # which lines of the C library its unit tests and end-to-end jobs run through
	scripts/coverage

lint: build
	scripts/lint

format: # writes what `make lint` asks for
	scripts/lint --fix format

generate: # what of docs/reference is made from code
	go generate ./internal/... ./cmd/zipper ./forwarder/monitor
