module quittance.example/go

go 1.24
