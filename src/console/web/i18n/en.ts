/** English. The other languages have the same shape. */
import { abTests } from './ab-tests/en'
import { appliance } from './appliance/en'
import { audience } from './audience/en'
import { automations } from './automations/en'
import { campaignReports } from './campaign-reports/en'
import { campaigns } from './campaigns/en'
import { mail } from './mail/en'
import { people } from './people/en'
import { reports } from './reports/en'
import { sending } from './sending/en'
import { setup } from './setup/en'
import { serverNames } from './server-names/en'
import { shell } from './shell/en'
import { templates } from './templates/en'
import { waiting } from './waiting/en'

export const en = {
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

export type Texts = typeof en
