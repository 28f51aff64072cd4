// Time zones: ZONES has, by name, the index of [rule, times, offsets]; times are in seconds, offsets in seconds too.

const zoneNames = create(null);
for (const name of keys(ZONES.names)) zoneNames[name.toLowerCase()] = name;
const zoneOf = (name) => {
  if (name === undefined) return "UTC";
  const found = zoneNames[`${name}`.toLowerCase()];
  const offset = /^([+-])(\d{2}):?(\d{2})?$/.exec(`${name}`);
  if (found === undefined && offset) return `${offset[1]}${offset[2]}:${offset[3] ?? "00"}`;
  if (found === undefined) throw new RangeError(`Invalid time zone specified: ${name}`);
  return /^(?:etc\/)?(?:utc|gmt|uct|zulu|universal|greenwich)$/i.test(found) ? "UTC" : found;
};
// A date of a POSIX rule, `M3.2.0/2` or the like, as seconds from the start of the year.
const ruleDay = (year, rule) => {
  const [, month, week, weekday, , sign, hours, minutes] = /^M(\d+)\.(\d)\.(\d)(\/([+-]?)(\d+)(?::(\d+))?)?$/.exec(rule);
  const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay();
  let day = 1 + ((7 + Number(weekday) - first) % 7) + (week - 1) * 7;
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) day -= 7;
  const time = hours === undefined ? 7200 : (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes ?? 0) * 60);
  return Date.UTC(year, month - 1, day) / 1000 + time;
};
const posixOffset = (text) => {
  const [, sign, hours, minutes] = /^([+-]?)(\d+)(?::(\d+))?/.exec(text);
  return (sign === "-" ? 1 : -1) * (Number(hours) * 3600 + Number(minutes ?? 0) * 60);
};
const RULE = /^(<[^>]+>|[A-Za-z]+)([+-]?\d+(?::\d+)?)(?:(<[^>]+>|[A-Za-z]+)([+-]?\d+(?::\d+)?)?,([^,]+),([^,]+))?$/;
const fact = (offset, name, daylight) => ({ offset, name: name.replace(/[<>]/g, ""), daylight });
const zoneAt = (zone, ms) => {
  if (zone === "UTC") return fact(0, "UTC", false);
  if (/^[+-]/.test(zone)) return fact((zone[0] === "-" ? -1 : 1) * (Number(zone.slice(1, 3)) * 3600 + Number(zone.slice(4)) * 60), "", false);
  const [rule, times, kinds, chosenKinds] = ZONES.data[ZONES.names[zone]];
  const seconds = Math.floor(ms / 1000);
  if (times.length && seconds < times.at(-1)) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= seconds) low = middle + 1;
      else high = middle;
    }
    const [offset, daylight, name] = kinds[low === 0 ? 0 : chosenKinds[low - 1]];
    return fact(offset, name, Boolean(daylight));
  }
  const found = RULE.exec(rule);
  if (!found) {
    const [offset, daylight, name] = kinds[chosenKinds.at(-1) ?? 0];
    return fact(offset, name, Boolean(daylight));
  }
  const standard = posixOffset(found[2]);
  if (found[5] === undefined) return fact(standard, found[1], false);
  const summer = found[4] === undefined ? standard + 3600 : posixOffset(found[4]);
  const year = new Date(ms + standard * 1000).getUTCFullYear();
  const begins = ruleDay(year, found[5]) - standard;
  const ends = ruleDay(year, found[6]) - summer;
  const daylight = begins < ends ? seconds >= begins && seconds < ends : seconds >= begins || seconds < ends;
  return daylight ? fact(summer, found[3], true) : fact(standard, found[1], false);
};

// Names of zones (UTS 35, part 4). The CLDR has them by metazone: by what a zone kept together with others at a time.

const cldrZone = (zone) => (zone === "UTC" ? "Etc/UTC" : worldOf("zones").alias[zone] ?? zone);
const metazoneAt = (zone, ms) => {
  const time = new Date(ms).toISOString().slice(0, 16).replace("T", " ");
  return (worldOf("zones").meta[cldrZone(zone)] ?? []).find(([, from, to]) => (from === "" || from <= time) && (to === "" || time < to))?.[0];
};
// Ireland's clocks are said to be put back in winter; names count its summer as the other time.
const isSummer = (zone, { daylight, offset }) => (cldrZone(zone) === "Europe/Dublin" ? offset === 3600 : daylight);
const hasSummer = (zone, ms) => [-182, -91, 0, 91, 182].some((days) => isSummer(zone, zoneAt(zone, ms + days * 864e5)));
const offsetName = (data, digits, seconds, long, generic) => {
  if (seconds === 0 && !generic) return textAt("zones", data, "gmtZeroFormat");
  const size = Math.abs(seconds);
  const two = (number) => inDigits(digits, String(number).padStart(2, "0"));
  const [hours, minutes, rest] = [Math.floor(size / 3600), Math.floor((size % 3600) / 60), Math.floor(size % 60)];
  const pattern = textAt("zones", data, "hourFormat").split(";")[seconds < 0 ? 1 : 0];
  const [, before, between, after] = /^(.*?)H+(.*?)mm(.*)$/.exec(pattern);
  if (!long && !minutes) return textAt("zones", data, "gmtFormat").replace("{0}", before + inDigits(digits, `${hours}`));
  const text = `${long ? two(hours) : inDigits(digits, `${hours}`)}${between}${two(minutes)}${rest ? between + two(rest) : ""}`;
  return textAt("zones", data, "gmtFormat").replace("{0}", `${before}${text}${after}`);
};
// The name of where it is: of its country when that has one zone or this is its first, else of its city.
const placeName = (data, zone) => {
  const { region, primary } = worldOf("zones");
  const name = cldrZone(zone);
  const country = region[name];
  if (country === undefined) return undefined;
  const alone = keys(region).filter((one) => region[one] === country).length === 1 || primary[country] === name;
  const place = alone ? textAt("names", data, `territories/${country}`) : undefined;
  return textAt("zones", data, "regionFormat").replace("{0}", place ?? name.split("/").at(-1).replaceAll("_", " "));
};
const zoneName = (data, digits, zone, ms, letter, length) => {
  const now = zoneAt(zone, ms);
  const long = length === 4;
  if (letter === "O") return offsetName(data, digits, now.offset, long);
  const meta = metazoneAt(zone, ms);
  const width = long ? "long" : "short";
  const named = (kind) => textAt("zones", data, `${cldrZone(zone)}/${width}/${kind}`) ?? (meta && textAt("zones", data, `${meta}/${width}/${kind}`));
  const plain = () => offsetName(data, digits, now.offset, long);
  if (letter === "z") return named(isSummer(zone, now) ? "daylight" : "standard") ?? plain();
  if (/^[+-]/.test(zone)) return plain();
  if (zone === "UTC") return offsetName(data, digits, 0, long, true);
  return (hasSummer(zone, ms) ? named("generic") : named("standard") ?? named("generic")) ?? placeName(data, zone) ?? plain();
};
