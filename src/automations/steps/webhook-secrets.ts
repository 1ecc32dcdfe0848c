/**
 * Masks secrets in webhook steps when they are shown. Stored and sent values are complete.
 *
 * | value                                      | key with `automations:write` | read-only key |
 * |--------------------------------------------|------------------------------|---------------|
 * | headers whose name suggests a credential   | masked                       | masked        |
 * | other headers                              | shown                        | masked        |
 * | URL after the host, often a secret         | shown                        | masked        |
 * | body fields whose name suggests a credential | shown                      | masked        |
 *
 * A mask that a client sends back keeps the stored value. Pure. Throws AppError validation_error for a mask without a stored value.
 */
import { refusal } from '../../audience/checks.js'

type Config = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

export const MASK = '********'

/** Names of credentials in HTTP (RFC 9110 §11, RFC 6265) and names that services commonly use. */
const IS_SECRET =
  /^(proxy-)?authorization$|^cookie$|(^|[-_])(token|secret|password|credentials?|signature|(api|access|auth)?[-_]?key|auth)([-_]|$)/i

export function maskSecrets(config: Config, mayWrite: boolean): Config {
  const { headers, url, body } = config
  if (!isObject(headers)) return config
  const shown = Object.entries(headers as Headers).map(([name, value]) => [
    name,
    mayWrite && !IS_SECRET.test(name) ? value : MASK,
  ])
  const masked = { ...config, headers: Object.fromEntries(shown) as Headers }
  if (mayWrite) return masked
  return {
    ...masked,
    ...(typeof url === 'string' ? { url: maskUrl(url) } : {}),
    ...(isObject(body) ? { body: maskFields(body) } : {}),
  }
}

/**
 * Replaces masks in the input by the stored values.
 *
 * @param stored the current config; absent for a new step
 * @param path of the config in the request
 */
export function restoreSecrets(input: Config, stored: Config | undefined, path: string): Config {
  const { headers, url, body } = input
  return {
    ...input,
    ...(isObject(headers) ? { headers: restoreHeaders(headers, stored?.['headers'], path) } : {}),
    ...(typeof url === 'string' ? { url: restoreUrl(url, stored?.['url'], path) } : {}),
    ...(isObject(body) && isObject(stored?.['body']) ? { body: restoreFields(body, stored['body']) } : {}),
  }
}

function restoreHeaders(headers: Config, before: unknown, path: string): Config {
  const stored = isObject(before) ? Object.entries(before) : []
  const byName = new Map(stored.map(([name, value]) => [name.toLowerCase(), value]))
  const kept = Object.entries(headers).map(([name, value]) => {
    if (value !== MASK) return [name, value]
    const known = byName.get(name.toLowerCase())
    if (known === undefined) throw unknownMask(`${path}.headers.${name}`)
    return [name, known]
  })
  return Object.fromEntries(kept) as Config
}

function restoreUrl(url: string, before: unknown, path: string): string {
  if (!url.includes(MASK)) return url
  if (typeof before === 'string' && maskUrl(before) === url) return before
  throw unknownMask(`${path}.url`)
}

function maskUrl(url: string): string {
  const [host = '', rest = ''] = /^([a-z]+:\/\/[^/?#\\]*)(.*)$/is.exec(url)?.slice(1) ?? ['', url]
  return rest === '' || rest === '/' ? url : `${host}/${MASK}`
}

function maskFields(body: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      IS_SECRET.test(name) ? MASK : isObject(value) ? maskFields(value) : value,
    ]),
  )
}

function restoreFields(body: Config, before: Config): Config {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const stored = Object.hasOwn(before, name) ? before[name] : undefined
      if (value === MASK && IS_SECRET.test(name) && stored !== undefined) return [name, stored]
      return [name, isObject(value) && isObject(stored) ? restoreFields(value, stored) : value]
    }),
  )
}

function unknownMask(path: string) {
  return refusal(path, `${MASK} stands for a stored secret, but none is stored here; send the value itself`)
}

function isObject(value: unknown): value is Config {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
