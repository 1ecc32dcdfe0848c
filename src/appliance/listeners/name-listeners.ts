/**
 * Wires the name server of `dns.dkim_zone`: its listeners and its records.
 *
 * Part of the composition root, opened by `phases/listeners.ts`. Rejects with an Error naming the address that cannot be bound; nothing stays open.
 */
import type { Appliance } from '../appliance.js'
import { openServedZone } from '../../deliverability/domains/dkim/dkim-zone.js'
import { openNameServer, type ZoneSource } from '../../nameserver/name-server.js'
import { listenDns, type DnsListener } from '../../world/dns/listen-dns.js'
import { markIpv6Only, type ListenAddress } from '../../world/net/listen.js'

export interface NameListeners {
  /** Addresses actually bound. */
  readonly addresses: readonly ListenAddress[]
  close(): Promise<void>
}

/** @param otherRecords of the zone, besides DKIM keys */
export async function openNameListeners(
  { config: { dns, hostname }, world: { clock }, database }: Appliance,
  otherRecords?: ZoneSource,
): Promise<NameListeners> {
  const keys = openServedZone({ database, clock })
  const source: ZoneSource = { find: async label => (await otherRecords?.find(label)) ?? keys.find(label) }
  const handler = openNameServer({ zone: dns.dkimZone, server: hostname, clock, source })
  const listeners: DnsListener[] = []
  const close = async (): Promise<void> => {
    await Promise.all(listeners.map(listener => listener.close()))
  }
  try {
    for (const address of markIpv6Only(dns.listen)) listeners.push(await listenDns(address, handler, clock))
  } catch (error) {
    await close()
    throw error
  }
  return { addresses: listeners.map(({ address }) => address), close }
}
