/** Dependencies of the inbound listener and of processing its mail, by the configuration. */
import { spawnThread } from '../world/threads.js'
import { openResolver, type Appliance } from './appliance.js'

export function inboundParts({ config, world, database, newId, returnPathKeys }: Appliance) {
  return {
    ...world,
    database,
    newId,
    spawn: spawnThread,
    resolver: openResolver(config, world),
    keys: returnPathKeys,
    hostname: config.hostname,
    nodeNames: config.inbound.nodeNames,
    reportDomain: config.inbound.reportDomain,
    returnPathDomain: config.mta.returnPathDomain,
    messageSize: config.inbound.messageSizeBytes,
    unsignedMessageSize: config.inbound.unsignedMessageSizeBytes,
    limits: {
      mailsPerMinute: config.inbound.unsignedPerMinute,
      octetsPerHour: config.inbound.unsignedSizePerHourBytes,
      octetsPerHourInAll: config.inbound.unsignedSizePerHourInAllBytes,
    },
    keepSize: config.inbound.keepSizeBytes,
    forwardTo: config.inbound.forwardTo,
    expireMs: config.mta.retry.expireMs,
  }
}
