/** WebAuthn in the browser: options of the API in, signed answers out (WebAuthn Level 3 §5.1). */
import type { components } from '#api/admin'

type Options = Readonly<Record<string, unknown>>
export type Assertion = components['schemas']['PasskeyAssertion']
export type Registration = components['schemas']['PasskeyRegistration']

/** Browsers offer passkeys over HTTPS and on localhost only, and never for an IP address. */
export function canUsePasskeys(): boolean {
  const isAddress = /^[\d.]+$|^\[/.test(location.hostname)
  return isSecureContext && !isAddress && 'PublicKeyCredential' in window
}

/** @throws Error if the person cancels */
export async function assertPasskey(options: Options): Promise<Assertion> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(
    options as unknown as PublicKeyCredentialRequestOptionsJSON,
  )
  const credential = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential
  return withoutUnknown(credential.toJSON()) as unknown as Assertion
}

/** @throws Error if the person cancels */
export async function createPasskey(options: Options): Promise<Registration> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(
    options as unknown as PublicKeyCredentialCreationOptionsJSON,
  )
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
  return withoutUnknown(credential.toJSON()) as unknown as Registration
}

/** What the API takes; browsers add more. */
function withoutUnknown(json: object): object {
  const { id, rawId, type, response } = json as Record<string, unknown>
  const wanted = [
    'clientDataJSON',
    'attestationObject',
    'authenticatorData',
    'signature',
    'userHandle',
    'transports',
  ]
  const signed = Object.entries(response as object).filter(
    ([name, value]) => wanted.includes(name) && value !== null && value !== undefined,
  )
  return { id, rawId, type, response: Object.fromEntries(signed) }
}
