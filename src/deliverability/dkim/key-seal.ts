/**
 * How private keys are kept sealed in the database, as this folder sees it; `accounts/secret-box.ts` does the sealing, and
 * the composition root hands it over.
 */
export interface KeySeal {
  /** @param place what the seal is bound to, e.g. `dkim_keys/private_key/<id>` */
  seal(text: string, place: string): string
  /** Text that is not sealed comes back as it is. Throws where it cannot be opened. */
  open(text: string, place: string): string
}

export function keyPlace(keyId: string): string {
  return `dkim_keys/private_key/${keyId}`
}
