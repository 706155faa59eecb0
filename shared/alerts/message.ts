// Builds the texts of alerts. Module messages may contain untrusted names, so they are sanitized
// and shortened here.

import { formatDuration, formatUtc } from '@holdfast/kit/format';
import { asciiLine, escapeHtml, maskAddresses, maskRecipient, oneLine, shortened } from '@holdfast/kit/text';
import type { Alert, Level, Message } from './port.ts';

/** The parts of an alert that recipients see. Times are ISO 8601. */
export interface AlertReport {
  id: string;
  module: string;
  level: Level;
  message: string;
  /** Every finding that is not ok, with its value and threshold, worst first. */
  details: readonly string[];
  /** Since when the module is not ok. */
  since: string;
  raised_at: string;
}

/** The stack that the alert comes from. */
export interface Place {
  /** SERVER_ADDRESS. */
  name: string;
  /** Base URL of the console and the API. */
  url: string;
}

export interface AlertMessageInput {
  alert: AlertReport;
  place: Place;
  /** What to do, one sentence each. */
  remedy: readonly string[];
  /**
   * Selects the fresh or the late text, but is in neither, so that attempts send at most two texts.
   */
  now: Date;
}

/** A later alert says that it is late. */
const LATE_MS = 60_000;
/** A shorter difference is not mentioned. */
const NOTICEABLE_MS = 1000;
const MAX_BRIEF = 300;
/** The longest sentence in characters. */
const MAX_REPORTED = 600;
const MAX_FINDINGS = 20;

const COLORS: Record<Level, string> = { note: '#1f5f99', warning: '#8a5a00', critical: '#b00020' };

/** The parts of a mail before rendering. Each is one line and not escaped yet. */
interface Letter {
  title: string;
  color: string;
  paragraphs: string[];
  lists: { heading: string; items: string[] }[];
  link: { label: string; url: string };
  why: string;
}

/** The message of one alert. A late one uses the past tense, as the state may have changed. */
export function alertMessage({ alert, place, remedy, now }: AlertMessageInput): Message {
  const late = now.getTime() - Date.parse(alert.raised_at) >= LATE_MS;
  const verb = late ? 'was' : 'is';
  const letter: Letter = {
    title: `${messageOf(alert.module, 40)} ${verb} ${alert.level} on ${messageOf(place.name, 253)}`,
    color: COLORS[alert.level],
    paragraphs: [`Problem: ${messageOf(alert.message)}`, sinceWhen(alert), ...(late ? [lateness(alert)] : [])],
    lists: [
      { heading: 'Findings', items: alert.details.slice(0, MAX_FINDINGS).map((detail) => messageOf(detail)) },
      { heading: 'Next steps', items: remedy.map((sentence) => messageOf(sentence)) },
    ],
    link: { label: late ? 'Current state' : 'Details', url: pageOf(alert.module, place) },
    why: whyYou(alert),
  };
  const subject = `[Holdfast] ${asciiName(alert.module, 40)} ${verb} ${alert.level} on ${asciiName(place.name, 100)}`;
  return { id: alert.id, subject, ...rendered(letter), brief: briefOf(alert, place, late) };
}

/** The test message of a channel. */
export function testMessage(place: Place, channel: 'email' | 'sms', id: string): Message {
  const name = asciiName(place.name, 100);
  const setting = channel === 'email' ? 'ALERT_EMAIL_TO' : 'ALERT_SMS_TO';
  const what = `Alerts by ${channel === 'email' ? 'email' : 'SMS'} work. This is a test: no action is needed.`;
  const letter: Letter = {
    title: `Test message from ${messageOf(place.name, 253)}`,
    color: COLORS.note,
    paragraphs: [what],
    lists: [],
    link: { label: 'Overview', url: `${baseOf(place)}/` },
    why: `You get this because an administrator sent a test and your address is in ${setting}.`,
  };
  const brief = `[Holdfast] Test message from ${name}. ${what}`;
  return { id, subject: `[Holdfast] Test message from ${name}`, ...rendered(letter), brief };
}

/** The address with more about a module. */
function pageOf(module: string, place: Place): string {
  return `${baseOf(place)}/health/${encodeURIComponent(module.toWellFormed())}`;
}

function baseOf({ url }: Place): string {
  return url.replace(/\/+$/, '');
}

function sinceWhen({ since, raised_at }: AlertReport): string {
  const lasting = Date.parse(raised_at) - Date.parse(since);
  const before = lasting >= NOTICEABLE_MS ? `, ${formatDuration(lasting)} before this alert was raised` : '';
  return `Since: ${messageOf(formatUtc(since), 40)}${before}`;
}

/** Explains the delay: mail was down, or no process was running. */
function lateness({ raised_at }: AlertReport): string {
  const raised = `This alert was raised at ${messageOf(formatUtc(raised_at), 40)} but could not be sent until now.`;
  return `${raised} The state may have changed. Check the link below.`;
}

function whyYou({ module, level }: AlertReport): string {
  const variable = `MON_${messageOf(module, 40).toUpperCase().replaceAll(/\W/g, '_')}_ALERT_MIN_LEVEL`;
  return `You get this because your address is in ALERT_EMAIL_TO and ${level} reaches the level set by ${variable}.`;
}

/** The problem and place come first, then details and time: a long SMS is cut. */
function briefOf(alert: AlertReport, place: Place, late: boolean): string {
  const level = `${late ? 'was' : 'is'} ${alert.level.toUpperCase()}`;
  const start = `Holdfast: ${asciiName(alert.module, 40)} ${level} on ${asciiName(place.name, 60)}. `;
  const raised = late ? `, raised ${asciiName(formatUtc(alert.raised_at), 40)}, sent late` : '';
  const end = ` Since ${asciiName(formatUtc(alert.since), 40)}${raised}.`;
  const room = MAX_BRIEF - start.length - end.length;
  return `${start}${asciiName(alert.message, room)}${end}`;
}

/** A single back quote would halve the characters that fit into an SMS. */
function forPhones(text: string): string {
  return asciiLine(text).replaceAll('`', "'");
}

function asciiName(text: string, most: number): string {
  return shortened(forPhones(text), most);
}

function messageOf(text: string, most = MAX_REPORTED): string {
  return shortened(oneLine(text), most);
}

function rendered(letter: Letter): Pick<Message, 'text' | 'html'> {
  return { text: textOf(letter), html: htmlOf(letter) };
}

function textOf({ title, paragraphs, lists, link, why }: Letter): string {
  const listed = lists
    .filter(({ items }) => items.length > 0)
    .map(({ heading, items }) => [`${heading}:`, ...items.map((item) => `- ${item}`)].join('\n'));
  return `${[`${title}.`, paragraphs.join('\n'), ...listed, `${link.label}: ${link.url}`, why].join('\n\n')}\n`;
}

function htmlOf({ title, color, paragraphs, lists, link, why }: Letter): string {
  const tag = (name: string, content: string, style = ''): string =>
    `<${name}${style === '' ? '' : ` style="${style}"`}>${content}</${name}>\n`;
  const heading = tag('h1', escapeHtml(title), `font-size:20px;color:${color}`);
  const message = paragraphs.map((text) => tag('p', escapeHtml(text))).join('');
  const listed = lists
    .filter(({ items }) => items.length > 0)
    .map((list) => {
      const items = list.items.map((item) => tag('li', escapeHtml(item))).join('');
      return tag('h2', escapeHtml(list.heading), 'font-size:16px') + tag('ul', items);
    })
    .join('');
  const url = escapeHtml(link.url);
  const more = tag('p', `${escapeHtml(link.label)}: <a href="${url}">${url}</a>`);
  const small = tag('p', escapeHtml(why), 'font-size:12px;color:#555555');
  const style = 'font-family:sans-serif;font-size:15px;line-height:1.4;color:#222222;background:#ffffff';
  const head = `<head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>`;
  return `<!doctype html>\n<html lang="en">${head}\n${tag('body', `${heading}${message}${listed}${more}${small}`, style)}</html>\n`;
}

export interface AlertAddresses {
  ALERT_EMAIL_TO?: readonly string[] | undefined;
  ALERT_SMS_TO?: readonly string[] | undefined;
}

/**
 * An alert with masked recipient addresses, including those that services repeat in their answers.
 */
export function toAlertView(alert: Alert, settings: AlertAddresses): Alert {
  const known = [
    ...alert.deliveries.map(({ recipient }) => recipient),
    ...(settings.ALERT_EMAIL_TO ?? []),
    ...(settings.ALERT_SMS_TO ?? []),
  ];
  const hide = (text: string): string => maskAddresses(text, known);
  return {
    ...alert,
    reason: alert.reason === null ? null : hide(alert.reason),
    deliveries: alert.deliveries.map((each) => ({
      ...each,
      recipient: maskRecipient(each.recipient),
      detail: hide(each.detail),
    })),
  };
}
