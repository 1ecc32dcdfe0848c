/** Texts of what things wait for, and how long sending takes: French. */
import type { waiting as texts } from './en'

export const waiting: typeof texts = {
  waiting: {
    sentences: {
      hourly_limit: limit =>
        `En attente : l’espace de travail a atteint sa limite de ${limit} e-mails par heure.`,
      daily_limit: limit =>
        `En attente : l’espace de travail a atteint sa limite de ${limit} e-mails par jour.`,
      rate: limit => `En attente à cause de son propre débit de ${limit} e-mails par heure.`,
      sending_hours: () => 'En attente de ses heures d’envoi.',
      usual_hour: () => 'En attente de l’heure à laquelle les prochains destinataires lisent d’habitude.',
      hold: () => 'Suspendu jusqu’à ce que quelqu’un le reprenne.',
      restore_hold: () =>
        'En attente : le serveur a été restauré depuis une sauvegarde et n’envoie rien tant que sa file n’est pas libérée.',
      back_off: () =>
        'En attente : les serveurs destinataires ont demandé de ralentir ou étaient injoignables.',
      site_rate: limit => `En attente : les serveurs destinataires reçoivent ${limit} messages par minute.`,
      retry: () => 'En attente d’une nouvelle tentative après un échec temporaire.',
      ab_test: () => 'En attente du résultat du test A/B.',
      queue_full: () => 'En attente de la livraison de ses e-mails en file.',
      earlier_import: () => 'En attente d’une importation précédente.',
      disk: () => 'En attente : le serveur de messagerie ne peut plus rien enregistrer.',
    },
    short: {
      hourly_limit: 'Limite horaire',
      daily_limit: 'Limite par jour',
      rate: 'Débit propre',
      sending_hours: 'Heures d’envoi',
      usual_hour: 'Heure habituelle',
      hold: 'Suspendu',
      restore_hold: 'Suspendu après restauration',
      back_off: 'Pause d’envoi',
      site_rate: 'Débit des serveurs',
      retry: 'Nouvelle tentative',
      ab_test: 'Test A/B',
      queue_full: 'File pleine',
      earlier_import: 'Importation précédente',
      disk: 'Disque plein',
    },
    remedies: {
      limit: 'Un opérateur peut relever la limite.',
      fixed: 'Ce réglage est figé une fois la campagne envoyée ; une copie peut en avoir un autre.',
      winner: 'Choisissez le gagnant pour continuer tout de suite.',
    },
    links: { workspace: 'Modifier la limite', delivery: 'Voir la file', health: 'Voir l’état' },
    label: 'Attend',
    until: moment => `Reprise : ${moment}.`,
    due: 'Prévue maintenant',
    campaign: (name, reason) => `« ${name} » attend : ${reason}`,
    takes: how => `L’envoi prend environ ${how} avec les limites actuelles.`,
    takesMonths: 'L’envoi prend plus de 90 jours avec les limites actuelles.',
    because: {
      hourly_limit: limit => `L’espace de travail peut envoyer ${limit} e-mails par heure.`,
      daily_limit: limit => `L’espace de travail peut envoyer ${limit} e-mails par jour.`,
      rate: limit => `La campagne envoie ${limit} e-mails par heure.`,
      sending_hours: () => 'La campagne n’est envoyée que pendant ses heures d’envoi.',
      usual_hour: () => 'Chaque destinataire reçoit l’e-mail à son heure habituelle.',
      ab_test: () => 'Le test A/B est tranché entre-temps.',
    },
  },
}
