/** `postroad dns zone`: what the name server of `dns.dkim_zone` has to answer. */
import type { Command } from 'commander'
import { zoneFile, zoneRecords } from '../../deliverability/dkim/dkim-zone.js'
import { command, printResult, withAppliance, type CliContext, type CommonOptions } from '../context.js'

export function dnsCommands(program: Command, context: CliContext): void {
  const group = program.command('dns').description('DNS that this appliance needs')
  command(group, 'zone', 'TXT records of all DKIM keys, as a fragment of a zone file').action(
    async (options: CommonOptions) => {
      await withAppliance(context, options, async ({ database, config, world }) => {
        const { dkimZone } = config.dns
        const records = await zoneRecords(database.reader, dkimZone, world.clock.now())
        const json = records.map(({ name, type, ttl, value }) => ({ name, type, ttl, value }))
        printResult(context, options, json, () => zoneFile(records, dkimZone))
      })
    },
  )
}
