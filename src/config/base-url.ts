/** Base URL of the API on this machine or LAN, for `init` and the API description. */
import type { Config } from './config.js'

/** E.g. `http://127.0.0.1:8025`; no trailing slash. */
export function baseUrl({ http, publicUrl }: Pick<Config, 'http' | 'publicUrl'>): string {
  const [first] = http.listen
  if (!first) return publicUrl
  const host = first.host === '0.0.0.0' ? '127.0.0.1' : first.host === '::' ? '[::1]' : first.host
  return `http://${host}:${first.port}`
}
