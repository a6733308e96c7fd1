// Code that the types must accept, and code that they must refuse. It is compiled and
// never run.

export async function right(): Promise<void> {
  const checkout = await Quittance.initEmbeddedCheckout({
    fetchClientSecret: async () => (await fetch("/checkout", { method: "POST" })).text(),
    onReady: ({ layout }) => console.log(layout === "compact"),
    onComplete: ({ completion_token }) => void fetch("/completion", { method: "POST", body: completion_token }),
    onPending: ({ reason }) => console.log(reason),
    onSessionEnd: () => checkout.destroy(),
    onError: ({ code, retryable, ref }) => console.log(code === "origin_rejected", retryable, ref),
    onClose: () => checkout.unmount(),
    onSlow: () => {},
    layout: "compact",
    locale: "fr",
    resize: "auto",
    checkoutOrigin: "https://pay.example",
  });
  checkout.mount("#pay");
  checkout.mount(document.body);
  document.body.addEventListener("quittance:checkout.pending", (event) => console.log(event.detail.reason));
  await window.Quittance.initEmbeddedCheckout({ clientSecret: "chs_1:chs_secret_2" });
}

export async function wrong(): Promise<void> {
  // @ts-expect-error no secret
  await Quittance.initEmbeddedCheckout({ layout: "large" });
  // @ts-expect-error two secrets
  await Quittance.initEmbeddedCheckout({ clientSecret: "", fetchClientSecret: () => "" });
  // @ts-expect-error no such layout
  await Quittance.initEmbeddedCheckout({ clientSecret: "", layout: "huge" });
  // @ts-expect-error no such callback
  await Quittance.initEmbeddedCheckout({ clientSecret: "", onPaid: () => {} });
  // @ts-expect-error a completion does not tell the outcome of the payment
  await Quittance.initEmbeddedCheckout({ clientSecret: "", onComplete: ({ paid }) => console.log(paid) });
}
