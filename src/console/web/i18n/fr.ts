/** French. */
import type { Texts } from './en'
import { abTests } from './ab-tests/fr'
import { appliance } from './appliance/fr'
import { audience } from './audience/fr'
import { automations } from './automations/fr'
import { campaignReports } from './campaign-reports/fr'
import { campaigns } from './campaigns/fr'
import { mail } from './mail/fr'
import { people } from './people/fr'
import { reports } from './reports/fr'
import { sending } from './sending/fr'
import { setup } from './setup/fr'
import { serverNames } from './server-names/fr'
import { shell } from './shell/fr'
import { templates } from './templates/fr'
import { waiting } from './waiting/fr'

export const fr: Texts = {
  ...abTests,
  ...appliance,
  ...audience,
  ...automations,
  ...campaignReports,
  ...campaigns,
  ...mail,
  ...people,
  ...reports,
  ...sending,
  ...setup,
  ...serverNames,
  ...shell,
  ...templates,
  ...waiting,
}
