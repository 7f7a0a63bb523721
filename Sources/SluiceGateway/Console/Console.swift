import Hummingbird
import SluiceCore
import SluicePipeline
import SluicePostgres

/// What the console's page is made of. Nothing is asked before somebody looks, and nothing here changes anything.
///
/// What is counted in memory is read as it is. What asks others is a part that answers in time or has its error shown in its place, as
/// the page is for when things are broken.
final class Console: Sendable {
    /// Seconds from one look of a browser to the next.
    static let refresh = 5
    /// Nanoseconds for each part that asks others.
    static let patience: UInt64 = 2_000_000_000
    /// Refused objects and rows that do not fit that are shown, the newest.
    static let shown = 20
    /// Characters of a text from outside that are shown.
    static let characters = 1_000

    /// The newest of something, and how many there are.
    struct Listed<Element: Sendable>: Sendable {
        var newest: [Element]
        var count: Int
    }

    private let status: ConsoleStatus
    private let flow: ConsoleFlow
    private let metrics: Metrics
    private let environment: any SluiceCore.Environment
    private let generations: RuleGenerations
    private let gauges: PartReader<Void>
    private let slot: PartReader<SlotState?>
    private let refused: PartReader<Listed<DeadLetter>>
    private let unfit: PartReader<Listed<QuarantinedRow>>

    init(_ parts: GatewayParts, app: String, gauges: GatewayGauges) {
        let environment = parts.sessionServices.environment
        status = ConsoleStatus(
            app: app, began: environment.monotonicNanoseconds(), environment: environment, readiness: parts.readiness,
            generations: parts.generations)
        flow = ConsoleFlow(metrics: parts.metrics)
        metrics = parts.metrics
        self.environment = environment
        generations = parts.generations
        self.gauges = PartReader("The feed", patience: Self.patience, environment: environment) { await gauges.refreshOwn() }
        slot = PartReader("The replication slot", patience: Self.patience, environment: environment) { try await gauges.slotState() }
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

    /// - Parameter isStill: whether the browser is not to ask again.
    func page(isStill: Bool) async -> ConsolePage {
        async let gauges = gauges.read()
        async let slot = slot.read()
        async let refused = refused.read()
        async let unfit = unfit.read()
        var body = status.html(isStill: isStill)
        body += flow.html(gauges: await gauges, slot: await slot)
        body += ConsoleErrorCounts(counted: metrics.values(of: .sessionErrors)).html
        body += ConsolePlugins(generations: generations.all, editsRefused: metrics.number(.rulesRefused).value).html
        body += ConsoleIngest(metrics: metrics).html
        body += ConsoleLists.refused(await refused)
        body += ConsoleLists.unfit(await unfit)
        return ConsolePage(title: status.title, body: body, refresh: isStill ? nil : Self.refresh)
    }
}
