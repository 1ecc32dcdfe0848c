/** The names of an ACME certificate: the hostname and the host of `public_url`. Pure. */
import type { Config } from '../../config/config.js'
import { ipVersion } from '../../world/net/ip-address.js'

export function acmeNames({ hostname, publicUrl }: Pick<Config, 'hostname' | 'publicUrl'>): string[] {
  const { protocol, hostname: host } = new URL(publicUrl)
  const name = host.toLowerCase().replace(/\.$/, '')
  const isName = protocol === 'https:' && ipVersion(name) === 0 && name.includes('.') && !name.startsWith('[')
  return [...new Set([hostname.toLowerCase(), ...(isName ? [name] : [])])]
}
