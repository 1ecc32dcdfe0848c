/** The addresses of this machine; asked by `config check`, `serve` and `doctor`. Fails: never. */
import { networkInterfaces } from 'node:os'

/** IPv4 and IPv6, without zones; undefined where the system does not tell, as to a service that may not open netlink sockets. */
export function ownAddresses(): string[] | undefined {
  try {
    return Object.values(networkInterfaces()).flatMap(all => (all ?? []).map(({ address }) => address))
  } catch {
    return undefined
  }
}
