/**
 * Makes the DKIM keys of a sending domain: for RSA and for Ed25519 a pair of selectors each, one that signs and one that
 * is published already for the day of the rotation.
 *
 * Called when a domain is added, and for a selector whose key has retired. Writes nothing.
 * Standards: RFC 8301 §3.2 (RSA-2048), RFC 8463 (Ed25519).
 */
import { publicKeyText } from '../../mail/dkim/dkim-record.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'
import type { DomainParts } from '../domains/domain-parts.js'
import type { NewDkimKey } from '../domains/domain-store.js'

/** Both halves as the database takes them. */
export type KeyTexts = Pick<NewDkimKey, 'publicKey' | 'privateKey'>

/** Endings of the selectors' names, which are otherwise the same for one domain. */
const SELECTORS = [
  { ending: '1', algorithm: 'rsa', state: 'active' },
  { ending: '2', algorithm: 'rsa', state: 'standby' },
  { ending: 'e1', algorithm: 'ed25519', state: 'active' },
  { ending: 'e2', algorithm: 'ed25519', state: 'standby' },
] as const

/** Takes about 200 ms, so never inside a transaction. */
export async function makeSelectorPairs({
  random,
  newId,
}: Pick<DomainParts, 'random' | 'newId'>): Promise<NewDkimKey[]> {
  const tag = random.bytes(5).toString('hex')
  return Promise.all(
    SELECTORS.map(async ({ ending, algorithm, state }) => ({
      id: newId(),
      name: `pr${tag}${ending}`,
      algorithm,
      state,
      retireAt: null,
      replacedAt: null,
      ...(await makeKey(random, algorithm)),
    })),
  )
}

export async function makeKey(
  random: DomainParts['random'],
  algorithm: DkimKey['algorithm'],
): Promise<KeyTexts> {
  const { privateKey, publicKey } = await random.keyPair(algorithm)
  return {
    publicKey: publicKeyText(publicKey),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
