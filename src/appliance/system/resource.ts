/** The appliance itself as a resource of the admin API. */
import { resource } from '../../resource/resource.js'
import { backupRoutes, type BackupRouteParts } from './backup-routes.js'
import { Backups, type BackupParts } from './backups.js'
import { certificateRoutes, type CertificateParts } from './certificate-routes.js'
import { configurationRoutes, type ConfigurationParts } from './configuration-routes.js'
import { doctorRoutes, DoctorRuns, type DoctorParts } from './doctor-routes.js'
import { jobRoutes, type JobParts } from './job-routes.js'

type SystemParts = JobParts &
  ConfigurationParts &
  DoctorParts &
  BackupParts &
  BackupRouteParts &
  CertificateParts

export const system = resource({
  chapters: {
    System: 'The appliance itself: configuration, health checks, scheduled jobs, backups, certificates.',
  },
  open(parts: SystemParts) {
    const doctor = new DoctorRuns(parts)
    const backups = new Backups(parts)
    return {
      routes: [
        ...configurationRoutes(parts),
        ...doctorRoutes(doctor),
        ...jobRoutes(parts),
        ...backupRoutes(backups, parts),
        ...certificateRoutes(parts),
      ],
      async stop() {
        await Promise.all([doctor.stop(), backups.stop()])
      },
    }
  },
})
