/** The appliance itself as a resource of the admin API. */
import { resource } from '../../resource/resource.js'
import { configurationRoutes, type ConfigurationParts } from './configuration-routes.js'
import { doctorRoutes, DoctorRuns, type DoctorParts } from './doctor-routes.js'
import { jobRoutes, type JobParts } from './job-routes.js'

type SystemParts = JobParts & ConfigurationParts & DoctorParts

export const system = resource({
  chapters: { System: 'The appliance itself: configuration, health checks, scheduled jobs.' },
  open(parts: SystemParts) {
    const doctor = new DoctorRuns(parts)
    return {
      routes: [...configurationRoutes(parts), ...doctorRoutes(doctor), ...jobRoutes(parts)],
      stop: () => doctor.stop(),
    }
  },
})
