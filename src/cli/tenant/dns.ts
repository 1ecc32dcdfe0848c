/** `postroad dns zone`: the contents of `dns.dkim_zone`. */
import type { Command } from 'commander'
import type { Config } from '../../config/config.js'
import { delegationLine, wholeZoneFile, zoneFile, zoneRecords } from '../../deliverability/dkim/dkim-zone.js'
import { command, printResult, withAppliance, type CliContext, type CommonOptions } from '../context.js'

export function dnsCommands(program: Command, context: CliContext): void {
  const group = program.command('dns').description('DNS records of this appliance')
  command(group, 'zone', 'print the TXT records of all DKIM keys in zone file syntax')
    .option('--whole', 'print a complete zone file, with SOA and NS')
    .action(async (options: CommonOptions & { whole?: boolean }) => {
      await withAppliance(context, options, async ({ database, config, world }) => {
        const { dns, hostname } = config
        const now = world.clock.now()
        const records = await zoneRecords(database.reader, dns.dkimZone, now)
        const json = records.map(({ name, type, ttl, value }) => ({ name, type, ttl, value }))
        const text = () =>
          options.whole
            ? wholeZoneFile(records, dns.dkimZone, hostname, Math.floor(now / 1_000))
            : zoneFile(records, dns.dkimZone)
        printResult(context, options, json, () => [...servedHere(config), text()].join('\n'))
      })
    })
}

/** As comments of a zone file. */
function servedHere({ dns, hostname }: Config): string[] {
  if (dns.listen.length === 0) return []
  return [
    `; This appliance is the name server of ${dns.dkimZone} (dns.listen). Delegate it in the parent zone:`,
    `;   ${delegationLine(dns.dkimZone, hostname)}`,
  ]
}
