/** Texts of what things wait for, and how long sending takes: German. */
import type { waiting as texts } from './en'

export const waiting: typeof texts = {
  waiting: {
    sentences: {
      hourly_limit: limit =>
        `Wartet: Der Arbeitsbereich hat seine Grenze von ${limit} Mails pro Stunde erreicht.`,
      daily_limit: limit =>
        `Wartet: Der Arbeitsbereich hat seine Grenze von ${limit} Mails pro Tag erreicht.`,
      rate: limit => `Wartet wegen des eigenen Tempos von ${limit} Mails pro Stunde.`,
      sending_hours: () => 'Wartet auf die Versandzeiten.',
      usual_hour: () => 'Wartet auf die Stunde, zu der die nächsten Empfänger gewöhnlich lesen.',
      hold: () => 'Angehalten, bis jemand fortsetzt.',
      restore_hold: () =>
        'Wartet: Der Server wurde aus einer Sicherung wiederhergestellt und sendet nichts, bis seine Warteschlange freigegeben wird.',
      back_off: () => 'Wartet: Die Empfangsserver baten um eine Pause oder waren nicht erreichbar.',
      site_rate: limit => `Wartet: Die Empfangsserver bekommen ${limit} Mails pro Minute.`,
      retry: () => 'Wartet nach einem vorübergehenden Fehler auf den nächsten Versuch.',
      ab_test: () => 'Wartet auf das Ergebnis des A/B-Tests.',
      queue_full: () => 'Wartet, bis Mails aus der Warteschlange zugestellt sind.',
      earlier_import: () => 'Wartet auf einen früheren Import.',
      disk: () => 'Wartet: Der Mailserver kann nichts mehr speichern.',
    },
    short: {
      hourly_limit: 'Grenze pro Stunde',
      daily_limit: 'Grenze pro Tag',
      rate: 'Eigenes Tempo',
      sending_hours: 'Versandzeiten',
      usual_hour: 'Übliche Stunde',
      hold: 'Angehalten',
      restore_hold: 'Nach Wiederherstellung angehalten',
      back_off: 'Sendepause',
      site_rate: 'Tempo der Server',
      retry: 'Nächster Versuch',
      ab_test: 'A/B-Test',
      queue_full: 'Warteschlange voll',
      earlier_import: 'Früherer Import',
      disk: 'Platte voll',
    },
    remedies: {
      limit: 'Ein Betreiber kann die Grenze anheben.',
      fixed: 'Das steht fest, sobald eine Kampagne gesendet ist; eine Kopie kann andere Einstellungen haben.',
      winner: 'Wählen Sie den Sieger, damit es sofort weitergeht.',
    },
    links: { workspace: 'Grenze ändern', delivery: 'Zur Warteschlange', health: 'Zum Zustand' },
    label: 'Wartet auf',
    until: moment => `Weiter geht es: ${moment}.`,
    due: 'Jetzt fällig',
    campaign: (name, reason) => `„${name}“ wartet: ${reason}`,
    takes: how => `Der Versand dauert bei den heutigen Grenzen etwa ${how}.`,
    takesMonths: 'Der Versand dauert bei den heutigen Grenzen mehr als 90 Tage.',
    because: {
      hourly_limit: limit => `Der Arbeitsbereich darf ${limit} Mails pro Stunde senden.`,
      daily_limit: limit => `Der Arbeitsbereich darf ${limit} Mails pro Tag senden.`,
      rate: limit => `Die Kampagne sendet ${limit} Mails pro Stunde.`,
      sending_hours: () => 'Die Kampagne wird nur zu ihren Versandzeiten gesendet.',
      usual_hour: () => 'Jeder Empfänger bekommt die Mail zu seiner üblichen Stunde.',
      ab_test: () => 'Dazwischen wird der A/B-Test entschieden.',
    },
  },
}
