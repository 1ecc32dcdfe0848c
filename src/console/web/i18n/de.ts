/** German. */
import type { Texts } from './en'
import { abTests } from './ab-tests/de'
import { appliance } from './appliance/de'
import { audience } from './audience/de'
import { automations } from './automations/de'
import { campaignReports } from './campaign-reports/de'
import { campaigns } from './campaigns/de'
import { mail } from './mail/de'
import { people } from './people/de'
import { reports } from './reports/de'
import { sending } from './sending/de'
import { setup } from './setup/de'
import { serverNames } from './server-names/de'
import { shell } from './shell/de'
import { templates } from './templates/de'
import { waiting } from './waiting/de'

export const de: Texts = {
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
