/** Where clients on this machine or on the LAN reach the API: in what `init` prints and what the API says of itself. */
import type { Config } from './config.js'

/** E.g. `http://127.0.0.1:8025`; without a slash at the end. */
export function baseUrl({ http, publicUrl }: Pick<Config, 'http' | 'publicUrl'>): string {
  const [first] = http.listen
  if (!first) return publicUrl
  const host = first.host === '0.0.0.0' ? '127.0.0.1' : first.host === '::' ? '[::1]' : first.host
  return `http://${host}:${first.port}`
}
