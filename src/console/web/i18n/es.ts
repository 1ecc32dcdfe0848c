/** Spanish. */
import type { Texts } from './en'
import { abTests } from './ab-tests/es'
import { appliance } from './appliance/es'
import { audience } from './audience/es'
import { automations } from './automations/es'
import { campaignReports } from './campaign-reports/es'
import { campaigns } from './campaigns/es'
import { mail } from './mail/es'
import { people } from './people/es'
import { reports } from './reports/es'
import { sending } from './sending/es'
import { setup } from './setup/es'
import { serverNames } from './server-names/es'
import { shell } from './shell/es'
import { templates } from './templates/es'
import { waiting } from './waiting/es'

export const es: Texts = {
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
