/** Checks of the doctor and scheduled jobs, which the server names by id, as people read them. Pure. */
import { tr } from '../i18n/i18n'

/** @param name of a check, e.g. `dns.ptr`, or of the setting that it is about, e.g. `mta.capture` */
export function checkName(name: string): string {
  const texts = tr().serverNames
  return texts.checks[name] ?? (/^[a-z_]+(\.[a-z_]+)*$/.test(name) ? texts.setting(name) : name)
}

/** @param name of a job; those that delete what has been kept long enough are `prune …` */
export function jobName(name: string): string {
  const texts = tr().serverNames
  const [, what] = /^prune (.+)$/.exec(name) ?? []
  if (what !== undefined) return texts.prune(texts.kept[what] ?? what)
  return texts.jobs[name] ?? name
}
