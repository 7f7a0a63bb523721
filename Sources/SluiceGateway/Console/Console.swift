import Hummingbird
import SluiceCore
import SluiceIdentity
import SluicePipeline
import SluicePostgres

/// The main page of the console. It reads only, and only when a browser requests it.
///
/// Counters are read from memory. Parts that query PostgreSQL or the log answer in time or are replaced by their error, as the page must
/// work during failures.
final class Console: Sendable {
    /// The seconds between two refreshes of a browser.
    static let refresh = 5
    /// The time limit of each part that queries another system, in nanoseconds.
    static let patience: UInt64 = 2_000_000_000
    /// The maximum number of sessions, of rejected objects, and of quarantined rows, on the page.
    static let shown = 20
    /// The maximum number of characters of a foreign text on the page.
    static let characters = 1_000

    /// The newest elements of a list, with the count of all.
    struct Listed<Element: Sendable>: Sendable {
        var newest: [Element]
        var count: Int
    }

    private let status: ConsoleStatus
    private let flow: ConsoleFlow
    private let metrics: Metrics
    /// The functions in use, those of the start.
    private let functions: [AppFunction]
    private let environment: any SluiceCore.Environment
    private let generations: RuleGenerations
    private let gauges: PartReader<Void>
    private let slot: PartReader<SlotState?>
    private let sessions: PartReader<ConsoleSessionList.Content>
    private let refused: PartReader<Listed<DeadLetter>>
    private let unfit: PartReader<Listed<QuarantinedRow>>

    init(_ parts: GatewayParts, app: AppConfiguration, gauges: GatewayGauges) {
        let environment = parts.sessionServices.environment
        status = ConsoleStatus(
            app: app.appID, began: environment.monotonicNanoseconds(), environment: environment, readiness: parts.readiness,
            generations: parts.generations)
        flow = ConsoleFlow(metrics: parts.metrics)
        metrics = parts.metrics
        functions = app.functions
        self.environment = environment
        generations = parts.generations
        self.gauges = PartReader("The feed", patience: Self.patience, environment: environment) { await gauges.refreshOwn() }
        slot = PartReader("The replication slot", patience: Self.patience, environment: environment) { try await gauges.slotState() }
        sessions = PartReader("The list of sessions", patience: Self.patience, environment: environment) {
            let all = await gauges.sessions.newest(Self.shown) + gauges.realm.newest(Self.shown)
            let newest = all.sorted { $0.began > $1.began }.prefix(Self.shown)
            return ConsoleSessionList.Content(
                newest: Array(newest), sluice: gauges.sessions.count, realm: gauges.realm.count, now: environment.monotonicNanoseconds())
        }
        let (letters, quarantine) = (parts.letters.letters, parts.quarantine)
        refused = PartReader("The list of refused objects", patience: Self.patience, environment: environment) {
            let newest = try await letters.newest(Self.shown, characters: Self.characters)
            return Listed(newest: newest, count: try await letters.count(DeadLetterStore.Filter()))
        }
        unfit = PartReader("The quarantine", patience: Self.patience, environment: environment) {
            let (rows, count) = try await quarantine.list(type: nil, limit: Self.shown)
            return Listed(newest: rows, count: count)
        }
    }

    /// - Parameter isStill: `true` if the browser must not refresh.
    func page(isStill: Bool) async -> ConsolePage {
        async let gauges = gauges.read()
        async let slot = slot.read()
        async let sessions = sessions.read()
        async let refused = refused.read()
        async let unfit = unfit.read()
        var body = status.html(isStill: isStill)
        body += flow.html(gauges: await gauges, slot: await slot)
        body += ConsoleSessionList.html(await sessions)
        body += ConsoleRealm(metrics: metrics).html
        body += ConsoleErrorCounts(counted: metrics.values(of: .sessionErrors)).html
        body += ConsolePlugins(generations: generations.all, editsRefused: metrics.number(.rulesRefused).value).html
        body += ConsoleIngest(metrics: metrics).html
        body += ConsoleFunctions(metrics: metrics, functions: functions).html
        body += ConsoleLists.refused(await refused)
        body += ConsoleLists.unfit(await unfit)
        return ConsolePage(title: status.title, body: body, refresh: isStill ? nil : Self.refresh)
    }
}
