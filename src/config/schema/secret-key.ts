/**
 * The `[secrets]` section. Its key is 32 bytes in base64, or the absolute path of a file that contains them.
 *
 * Also used by `accounts/secret-sealing.ts` to parse the file. Pure; invalid text parses to `undefined`.
 */
import { isAbsolute } from 'node:path'
import { optionalParsed, table } from './fields.js'

export type SecretKeySource = { readonly bytes: Buffer } | { readonly file: string }

const KEY_BYTES = 32

/** Tries base64 first: a key may begin with a slash, like a path. */
export function parseSecretKeySource(text: string): SecretKeySource | undefined {
  const bytes = parseSecretKey(text)
  if (bytes) return { bytes }
  return isAbsolute(text) ? { file: text } : undefined
}

/** @returns 32 bytes */
export function parseSecretKey(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === KEY_BYTES && bytes.toString('base64') === text ? bytes : undefined
}

export const SECRETS_SECTION = table(
  {
    key: optionalParsed(parseSecretKeySource, '32 bytes in base64 or the absolute path of a file', {
      default: '',
      example: '/var/lib/postroad/secrets.key',
      secret: 'always',
      description:
        'Key that encrypts private keys and secrets in the database, so that backups do not expose them: 32 bytes in base64 (`openssl rand -base64 32`), or the absolute path of a file with them. Existing secrets are encrypted when `serve` starts. They cannot be recovered without the key; store a copy of it apart from the backups.',
    }),
  },
  { description: 'Encryption of stored secrets.' },
)
