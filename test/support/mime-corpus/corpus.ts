/** All mails of the corpus; what takes relayed mail has to cope with each. */
import type { CorpusMail } from './build.js'
import { headerMails } from './header-mails.js'
import { nestedMails } from './nested-mails.js'
import { plainMails } from './plain-mails.js'
import { protectedMails } from './protected-mails.js'

export const mimeCorpus: readonly CorpusMail[] = [
  ...plainMails,
  ...headerMails,
  ...nestedMails,
  ...protectedMails,
]
