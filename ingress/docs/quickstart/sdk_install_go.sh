go mod init example
go mod edit -require quittance.example/go@v0.0.0 -replace quittance.example/go=$HOME/quittance/sdk/go
