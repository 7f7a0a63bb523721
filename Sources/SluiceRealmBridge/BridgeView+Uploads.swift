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
        let (last, operations) = try await hand(upload)
        let version: UInt64
        if let last { version = try await settled(last) } else { version = stream.progress(to: client) }
        return RealmWriteResult(
            integrated: RealmIntegratedUpload(clientVersion: client, serverVersion: version, operations: operations),
            rejected: channel.takeRejected(upTo: client))
    }

    /// Translates an upload for its turn in the orders.
    /// - Returns: The number of its last changeset, and the operations that the client keeps.
    private func hand(_ upload: RealmUploadMessage) async throws -> (last: UInt64?, operations: [OutgoingOperation]) {
        var messages: [[UInt8]] = []
        defer {
            // Also of an upload that failed, so that the next one meets its own turn.
            uploads.append(messages)
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
        let (changesets, operations) = try translate(entries, progress: upload.progress.clientVersion)
        // Behind the translation: the changesets may be older than the progress that comes with them.
        let confirmed = stream.confirm(upload.progress.serverVersion)
        messages = try self.messages(changesets, confirmed: confirmed)
        completion.add(changesets)
        return (changesets.last?.number, operations)
    }

    /// Adopts the declared classes in development mode, and checks the declarations against the app's schema.
    /// - Throws: `invalidSchemaChange`; `resync` if the session began before a class was added.
    private func declare(_ instructions: [RealmInstruction]) async throws {
        var schema = services.authority.current()
        if schema.isDevelopment {
            let types = try RealmDeclarations.types(in: instructions, known: schema.schema)
            let isMissing = types.contains { type in
                guard let known = schema.schema[type.name] else { return true }
                return type.properties.contains { known[$0.name] == nil }
            }
            if isMissing { schema = try await services.authority.extend(by: types) }
        }
        let check = RealmSchemaCheck(schema.schema)
        for instruction in instructions { try check.check(instruction) }
        guard let added = schema.schema.types.first(where: { !classes.contains($0.name) }) else { return }
        throw SluiceError(.resync, "Class \(added.name) was added after the session had begun.", fix: "The client connects again.")
    }

    /// Translates changesets and registers them in the stream.
    /// - Returns: The changesets, and the operations of the last one and those behind it.
    private func translate(
        _ entries: [(entry: RealmUploadEntry, instructions: [RealmInstruction])], progress: UInt64
    ) throws(SluiceError) -> (changesets: [Changeset], operations: [OutgoingOperation]) {
        var parts: [(entry: RealmUploadEntry, changes: [ObjectChange], operations: [OutgoingOperation])] = []
        var operations: [OutgoingOperation] = []
        let schema = services.authority.current().schema
        for (entry, instructions) in entries {
            let permitted = stream.permitted(instructions, of: entry)
            for instruction in permitted { operations.append(try OutgoingOperation(instruction)) }
            let changes = stream.completed(try objectChanges(permitted, schema, version: entry.clientVersion), of: entry)
            guard !changes.isEmpty else { continue }
            parts.append((entry, changes, operations))
            operations = []
        }
        var changesets: [Changeset] = []
        for (index, (entry, changes, operations)) in parts.enumerated() {
            let isLast = index == parts.count - 1
            changesets.append(
                stream.upload(
                    entry, changes, progress: isLast ? progress : entry.clientVersion, operations: isLast ? nil : operations))
        }
        return (changesets, (parts.last?.operations ?? []) + operations)
    }

    /// - Throws: `badChangeset` for every error of the content: repeating the upload cannot help, and the client is reset.
    private func objectChanges(
        _ instructions: [RealmInstruction], _ schema: Schema, version: UInt64
    ) throws(SluiceError) -> [ObjectChange] {
        do throws(SluiceError) {
            return try RealmEditTranslator.changes(of: instructions, schema: schema, lists: UnknownLists(), version: version)
        } catch {
            throw SluiceError(.badChangeset, error.message, fix: error.fix, cause: .error(error))
        }
    }

    /// Returns the messages of changesets, cut to a size.
    /// - Parameter confirmed: The number of the last compensating write that the client has; 0 for none.
    private func messages(_ changesets: [Changeset], confirmed: UInt64) throws(SluiceError) -> [[UInt8]] {
        let schema = services.authority.current().schema
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
