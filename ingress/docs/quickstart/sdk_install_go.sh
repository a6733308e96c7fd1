go mod init example
go mod edit -replace quittance.example/go=$HOME/quittance/sdk/go
go get quittance.example/go
