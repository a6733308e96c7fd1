// For tests: keeps every message that this page gets, also those of the SDK's ports, in
// window.messages.
(() => {
  "use strict";
  const messages = (window.messages = []);
  addEventListener("message", ({ origin, data }) => messages.push({ origin, data }));
  const Channel = window.MessageChannel;
  window.MessageChannel = function () {
    const channel = new Channel();
    channel.port1.addEventListener("message", ({ data }) => messages.push({ origin: "port", data }));
    return channel;
  };
})();
