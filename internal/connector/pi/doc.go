// Package pi is the regional switch, which moves money between banks and wallets of several
// institutions at once. Its first profile is pi, in the shape of the Business API of PI-SPI, the
// instant payments of the BCEAO. Label: profile pi; not certified by GIMAC.
//
// The package speaks ISO 20022 inside, because switches differ in their wire and not in these
// messages, and the profile turns each into a call:
//
//	identification of a payee   acmt.023, acmt.024   GET  /alias/{alias}
//	credit transfer             pacs.008, pacs.002   POST /paiements
//	its status                  pacs.028, pacs.002   GET  /paiements/{txId}, GET /paiements?txId={txId}
//	its return                  pacs.004             retourStatut of a payment
//	request to pay              pain.013, pain.014   POST /demandes-paiements
//	its status                  pain.014             GET  /demandes-paiements/{txId}
//
// # From public sources
//
// The rules of GIMACPAY are not public: agencies join through a bank. The shape is that of the
// public client libraries of the API Business of PI-SPI (version 1, and what is told of 1.5) and of
// reports about its sandbox. From these sources:
//
//   - OAuth2 client credentials (RFC 6749) for a token, an API key in x-api-key, and a client
//     certificate of the switch (mTLS).
//   - txId is ours: at most 35 characters, unique for ever. A second request with it is not carried
//     out: it is answered REJETE with DU03, whatever became of the first.
//   - GET /paiements/{txId} then tells of the last request, which is that rejected one. Only the
//     list of the txId has them all.
//   - confirmation: false sends at once; true waits for a second call and is not used. Nor is
//     /paiements-groupes, whose confirmation would be an approval outside of ours.
//   - INITIE and ENVOYE are open, IRREVOCABLE and REJETE final, with a reason of ISO 20022.
//   - Errors are problems (RFC 7807): 400 for what cannot be read, 403 for what is not carried out,
//     such as an amount above a ceiling, 404 for what does not exist.
//   - The wire names no currency. Its amounts are of the one currency of the switch.
//   - Reports go to addresses that are registered once for a client, and cannot name a session or a
//     line. None are registered: every outcome is found by enquiries.
//
// Not from public sources, to be agreed with the bank: the address of the token (/oauth2/token below
// that of the API), telephone numbers as aliases of payees with +242 (the sandbox of the BCEAO takes
// generated aliases only), XAF as the currency, paths of payments (/paiements-envoyes from version
// 1.5 on), and the field of the name in the answer of /alias (nom).
package pi
