module github.com/leidenzipper/zipper

go 1.26
