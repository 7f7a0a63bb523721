import FoundationEssentials
import SluiceCore
import SluicePipeline
import SluicePorts
import SluiceRealm
import SluiceWire

// The uploads of a client file.
extension BridgeView {
    /// The bytes of changesets in one message of the session.
    private static let messageBytes = 4 << 20
    /// The time for which a result is awaited at once, milliseconds. The connection has the deadline.
    private static let patience = 60_000

    /// Applies an upload, and returns once its changesets are durable and the stream has passed them.
    func integrate(_ upload: RealmUploadMessage) async throws -> RealmWriteResult {
        let client = upload.progress.clientVersion
        let translation = try await hand(upload)
        if let batch = translation.ingest.batches.last { try await ingested(batch.number) }
        let last = translation.changesets.last?.number
        let version: UInt64
        if let last {
            version = try await settled(last)
        } else {
            // Versions without a changeset change nothing for the entries.
            version = upload.entries.isEmpty ? stream.content.last : stream.progress(to: client)
        }
        return RealmWriteResult(
            integrated: RealmIntegratedUpload(clientVersion: client, serverVersion: version, operations: translation.operations),
            rejected: channel.takeRejected(upTo: client), previous: translation.changesets.dropLast().last?.number ?? 0)
    }

    /// Records changesets that took effect in an earlier session. What they made is compared with the server.
    func meet(repeated entries: [RealmUploadEntry]) {
        do throws(SluiceError) {
            for entry in entries { stream.receive(entry, try RealmChangesetReader.instructions(of: entry.changeset)) }
        } catch {
            channel.close(error)
        }
        channel.wake()
    }

    /// An upload as the pipeline takes it.
    private struct Translation {
        var changesets: [Changeset] = []
        /// The operations of the last changeset and those behind it, without those on asymmetric objects: the client keeps none.
        var operations: [OutgoingOperation] = []
        var ingest: BridgeIngest
    }

    /// Translates an upload for its turn in the orders.
    private func hand(_ upload: RealmUploadMessage) async throws -> Translation {
        var steps: [BridgeUploadStep] = []
        defer {
            // Also of an upload that failed, so that the next one meets its own turn.
            uploads.append(steps)
            handedUploads += 1
            handed.reach(handedUploads)
        }
        var entries: [(entry: RealmUploadEntry, instructions: [RealmInstruction])] = []
        for entry in upload.entries {
            let instructions = try RealmChangesetReader.instructions(of: entry.changeset)
            // Repeated ones too: the state may lack them.
            stream.receive(entry, instructions)
            guard entry.clientVersion > stream.content.client else { continue }
            try await declare(instructions)
            entries.append((entry, instructions))
        }
        let translation = try translate(entries, progress: upload.progress.clientVersion)
        // Behind the translation: the changesets may be older than the progress that comes with them.
        let confirmed = stream.confirm(upload.progress.serverVersion)
        let messages = try self.messages(translation.changesets, confirmed: confirmed)
        completion.add(translation.changesets)
        steps = translation.ingest.batches.map { .ingest($0) } + messages.map { .message($0) }
        return translation
    }

    /// Adopts the declared classes in development mode, and checks the declarations against the app's schema.
    /// - Throws: `invalidSchemaChange`; `resync` if the session began before a class was added.
    private func declare(_ instructions: [RealmInstruction]) async throws {
        var schema = shared.services.authority.current()
        if schema.isDevelopment {
            let types = try RealmDeclarations.types(in: instructions, known: schema.schema)
            let isMissing = types.contains { type in
                guard let known = schema.schema[type.name] else { return true }
                return type.properties.contains { known[$0.name] == nil }
            }
            if isMissing { schema = try await shared.services.authority.extend(by: types) }
        }
        let check = RealmSchemaCheck(schema.schema)
        for instruction in instructions { try check.check(instruction) }
        guard let added = schema.schema.types.first(where: { !classes.contains($0.name) }) else { return }
        throw SluiceError(.resync, "Class \(added.name) was added after the session had begun.", fix: "The client connects again.")
    }

    /// Translates changesets and registers them in the stream.
    private func translate(
        _ entries: [(entry: RealmUploadEntry, instructions: [RealmInstruction])], progress: UInt64
    ) throws(SluiceError) -> Translation {
        var parts: [(entry: RealmUploadEntry, changes: [ObjectChange], operations: [OutgoingOperation])] = []
        var operations: [OutgoingOperation] = []
        let schema = shared.services.authority.current().schema
        var translation = Translation(ingest: BridgeIngest(schema))
        for (entry, instructions) in entries {
            let permitted = stream.permitted(instructions, of: entry)
            for instruction in permitted where !BridgeIngest.concerns(instruction, schema) {
                operations.append(try OutgoingOperation(instruction))
            }
            let changes = stream.completed(try objectChanges(permitted, schema, of: entry, &translation.ingest), of: entry)
            guard !changes.isEmpty else { continue }
            parts.append((entry, changes, operations))
            operations = []
        }
        for (index, (entry, changes, operations)) in parts.enumerated() {
            let isLast = index == parts.count - 1
            translation.changesets.append(
                stream.upload(
                    entry, changes, progress: isLast ? progress : entry.clientVersion, operations: isLast ? nil : operations))
        }
        translation.operations = (parts.last?.operations ?? []) + operations
        return translation
    }

    /// Returns the changes of synchronized objects, and adds those of asymmetric objects to the ingest unless it has them.
    /// - Throws: `badChangeset` for every error of the content: repeating the upload cannot help, and the client is reset.
    private func objectChanges(
        _ instructions: [RealmInstruction], _ schema: Schema, of entry: RealmUploadEntry, _ ingest: inout BridgeIngest
    ) throws(SluiceError) -> [ObjectChange] {
        do throws(SluiceError) {
            let version = entry.clientVersion
            let changes = try RealmEditTranslator.changes(of: instructions, schema: schema, lists: UnknownLists(), version: version)
            let asymmetric = changes.filter { schema[$0.object.type]?.kind == .asymmetric }
            guard !asymmetric.isEmpty else { return changes }
            if version > stream.ingested { try ingest.add(asymmetric, of: version, at: RealmTime.hybrid(entry.timestamp)) }
            return changes.filter { schema[$0.object.type]?.kind != .asymmetric }
        } catch {
            throw SluiceError(.badChangeset, error.message, fix: error.fix, cause: .error(error))
        }
    }

    /// Returns the messages of changesets, cut to a size.
    /// - Parameter confirmed: The number of the last compensating write that the client has; 0 for none.
    private func messages(_ changesets: [Changeset], confirmed: UInt64) throws(SluiceError) -> [[UInt8]] {
        let schema = shared.services.authority.current().schema
        var messages: [[UInt8]] = []
        var (upload, bytes) = (PBUpload(), 0)
        upload.compensation = confirmed
        for changeset in changesets {
            let message = try PBChangeset(changeset, schema: schema)
            let size = try WireProtocol.encode(message).count
            if bytes > 0, bytes + size > Self.messageBytes {
                messages.append(try WireProtocol.encode(PBClientMessage(.upload(upload))))
                (upload, bytes) = (PBUpload(), 0)
            }
            upload.changesets.append(message)
            bytes += size
        }
        guard confirmed > 0 || !upload.changesets.isEmpty else { return messages }
        return messages + [try WireProtocol.encode(PBClientMessage(.upload(upload)))]
    }

    /// Waits until the asymmetric objects up to a changeset are durable.
    private func ingested(_ number: UInt64) async throws {
        while channel.ingested.count < number {
            await channel.ingested.wait(until: number, milliseconds: Self.patience)
            try Task.checkCancellation()
        }
        guard channel.isClosed else { return }
        throw channel.error ?? SluiceError(.shuttingDown, "The views of a client file were closed during an upload.")
    }

    /// Waits until a changeset is durable and the stream has passed it.
    /// - Returns: The version of the stream before it.
    private func settled(_ number: UInt64) async throws -> UInt64 {
        for event in [channel.acknowledged, passed] {
            while event.count < number {
                await event.wait(until: number, milliseconds: Self.patience)
                try Task.checkCancellation()
            }
        }
        guard let version = stream.takeBoundary(of: number) else {
            throw channel.error ?? SluiceError(.shuttingDown, "The views of a client file were closed during an upload.")
        }
        return version
    }
}
