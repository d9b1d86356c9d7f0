// An extension for pi (`pi --extension`): each provider that the variable names is asked at another address.
// https://pi.dev/docs/custom-provider, "Override Existing Provider"
export default function redirect(pi) {
  const addresses = JSON.parse(process.env.CAPTURED_PROVIDERS ?? "{}");
  for (const [name, baseUrl] of Object.entries(addresses)) pi.registerProvider(name, { baseUrl });
}
