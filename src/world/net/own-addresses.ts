/** The addresses of this machine; asked by `config check` and `doctor`. Fails: never. */
import { networkInterfaces } from 'node:os'

/** IPv4 and IPv6, without zones. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(all => (all ?? []).map(({ address }) => address))
}
