/** The appliance itself as a resource of the admin API, and its scheduled backups. */
import { integer, optionalParsed, table } from '../../config/schema/fields.js'
import { readCron } from '../../scheduler/cron.js'
import { resource } from '../../resource/resource.js'
import { backupRoutes, type BackupRouteParts } from './backup-routes.js'
import { Backups, type BackupParts } from './backups.js'
import { certificateRoutes, type CertificateParts } from './certificate-routes.js'
import { configurationRoutes, type ConfigurationParts } from './configuration-routes.js'
import { doctorRoutes, DoctorRuns, type DoctorParts } from './doctor-routes.js'
import { jobRoutes, type JobParts } from './job-routes.js'
import { nodeRoutes, type NodeParts } from './node-routes.js'
import { setupRoutes, type SetupParts } from './setup-routes.js'

type SystemParts = JobParts &
  NodeParts &
  ConfigurationParts &
  DoctorParts &
  BackupParts &
  BackupRouteParts &
  CertificateParts &
  SetupParts

const SECTION = table(
  {
    schedule: optionalParsed(cronText, 'a cron expression of five fields', {
      default: '',
      example: '30 2 * * *',
      description:
        'When the server backs up its database to `backups/` of the data folder: a cron expression in UTC. Empty: only on request. Copy the ' +
        'files to another machine; they do not contain the configuration, certificate files or the secrets.key file.',
    }),
    keep: integer({
      min: 0,
      max: 10_000,
      default: 7,
      description:
        'Backups kept in `backups/`. Once a new one is complete, the oldest beyond this number are deleted, requested ones included; 0 keeps ' +
        'all.',
    }),
  },
  { description: 'Backups that the server makes itself; `postroad jobs` shows when.' },
)

function cronText(text: string): string | undefined {
  try {
    readCron(text)
    return text
  } catch {
    return undefined
  }
}

export const system = resource({
  section: { name: 'backup', schema: SECTION },
  chapters: {
    System: 'The appliance itself: configuration, health checks, scheduled jobs, backups, certificates.',
  },
  open(parts: SystemParts, settings) {
    const doctor = new DoctorRuns(parts)
    const backups = new Backups(parts, settings)
    const { schedule } = settings
    return {
      routes: [
        ...configurationRoutes(parts),
        ...doctorRoutes(doctor),
        ...jobRoutes(parts),
        ...nodeRoutes(parts),
        ...backupRoutes(backups, parts),
        ...certificateRoutes(parts),
        ...setupRoutes(doctor, parts),
      ],
      jobs:
        schedule === undefined ? [] : [{ name: 'backup', schedule, run: stopping => backups.make(stopping) }],
      async stop() {
        await Promise.all([doctor.stop(), backups.stop()])
      },
    }
  },
})
