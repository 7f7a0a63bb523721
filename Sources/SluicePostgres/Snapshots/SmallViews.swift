import Glibc
import SluiceCore
import SluicePorts

/// Rows of one selection, or part of them.
struct SnapshotChunk: Sendable {
    var buffer = RowBuffer()
    var rows: [RowRef] = []
}

/// A reader of small views. Views requested at the same time share one snapshot: one transaction of two round trips.
struct SmallViews: Sendable {
    /// Returns the selections that make up a view of the given snapshot.
    typealias View = @Sendable (SnapshotStart) throws -> [SnapshotSelection]
    /// Decodes a row of a selection into a chunk.
    typealias Append = @Sendable (PostgresRow, SnapshotSelection, inout SnapshotChunk) -> Void

    enum Reading: Sendable {
        /// All rows, in one chunk per selection.
        case small(SnapshotStart, [SnapshotChunk])
        /// The view has more rows, or must be read in another way.
        case large
    }

    /// The limit of a small view, in bytes. `PostgresSnapshotStore.smallRows` limits its rows.
    static let bytes = 1 << 20
    /// The number of concurrent snapshots: half the processors, from 2 to 8. With fewer, more requests share the next one, at a
    /// lower cost each.
    static let snapshots = min(max(sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2, 2), 8)

    private let pool: PostgresPool
    private let append: Append
    private let together = RequestCoalescer<View, Reading>(width: Self.snapshots, most: 64)

    init(pool: PostgresPool, append: @escaping Append) {
        self.pool = pool
        self.append = append
    }

    /// The number of requests that wait for a snapshot.
    var waiting: Int { together.waiting }

    /// Reads a view in a snapshot that concurrent requests share.
    func read(_ view: @escaping View) async throws -> Reading { try await together.ask(view) { await read($0) } }

    private func read(_ views: [View]) async -> Gathered<Reading> {
        do {
            return try await pool.withSession { session in
                let begin = ContinuousClock.now
                return Gathered(answers: try read(views, session), duration: .now - begin)
            }
        } catch let failure as PostgresError where failure.isStalePlan && views.count == 1 {
            // The path for large views runs its statements without prepared plans.
            return Gathered(answers: [.success(.large)])
        } catch {
            guard views.count > 1, !Task.isCancelled else { return Gathered(answers: views.map { _ in .failure(error) }) }
            // Each view is read again alone, so that none fails because of another.
            var answers: [Result<Reading, any Error>] = []
            for view in views { answers += await read([view]).answers }
            return Gathered(answers: answers)
        }
    }

    private func read(_ views: [View], _ session: PostgresSession) throws -> [Result<Reading, any Error>] {
        var reading: ViewsReading?
        do {
            // The snapshot's identity decides the statements of the second round trip.
            try session.inTransaction(.readOnly, first: SnapshotStart.statement) { result in
                let made = ViewsReading(views, at: try SnapshotStart(result))
                reading = made
                return made.statements
            } row: { statement, row in
                reading?.take(row, of: statement, append)
            }
        } catch let failure as PipelineFailure {
            throw failure.error
        }
        return reading?.results ?? []
    }
}

/// Small views while they are read.
private struct ViewsReading {
    private struct View {
        var chunks: [SnapshotChunk] = []
        var rows = 0
        var bytes = 0
        var isLarge = false
        var error: (any Error)?
    }

    /// The limit of all views together, in bytes. A view that would exceed it counts as large.
    private static let bytes = 8 * SmallViews.bytes

    private let identity: SnapshotStart
    private var views: [View] = []
    private var parts: [(view: Int, chunk: Int, selection: SnapshotSelection)] = []
    private var bytes = 0
    private(set) var statements: [PostgresStatement] = []

    init(_ chosen: [SmallViews.View], at identity: SnapshotStart) {
        self.identity = identity
        for choose in chosen {
            var view = View()
            do {
                let selections = try choose(identity)
                // One row beyond the limit shows that a view is large.
                let texts = selections.compactMap { $0.sql(upTo: PostgresSnapshotStore.smallRows + 1) }
                view.isLarge = texts.count < selections.count
                if !view.isLarge {
                    for (chunk, (selection, text)) in zip(selections, texts).enumerated() {
                        parts.append((views.count, chunk, selection))
                        statements.append(PostgresStatement(text, selection.values))
                    }
                    view.chunks = selections.map { _ in SnapshotChunk() }
                }
            } catch {
                view.error = error
            }
            views.append(view)
        }
    }

    /// Adds a row to its view. A view beyond a limit becomes large, and its rows are dropped.
    mutating func take(_ row: PostgresRow, of statement: Int, _ append: SmallViews.Append) {
        let (number, chunk, selection) = parts[statement]
        guard !views[number].isLarge else { return }
        guard views[number].rows < PostgresSnapshotStore.smallRows, views[number].bytes < SmallViews.bytes, bytes < Self.bytes else {
            // The memory of its rows is free for the other views.
            bytes -= views[number].bytes
            views[number] = View(isLarge: true)
            return
        }
        let before = views[number].chunks[chunk].buffer.byteCount
        append(row, selection, &views[number].chunks[chunk])
        let added = views[number].chunks[chunk].buffer.byteCount - before
        views[number].rows += 1
        views[number].bytes += added
        bytes += added
    }

    var results: [Result<SmallViews.Reading, any Error>] {
        views.map { view in
            if let error = view.error { return .failure(error) }
            return .success(view.isLarge ? .large : .small(identity, view.chunks))
        }
    }
}
