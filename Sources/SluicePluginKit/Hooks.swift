import CSluicePlugin

// The functions of the table. C calls them, so they are functions of file scope. Each converts the input to typed arguments, calls the
// plugin, and writes the answer or the reason to the sink.

private typealias State = UnsafeMutableRawPointer?
private typealias Sink = UnsafePointer<sluice_sink>

/// Runs one hook on JSON.
private func run(
    _ state: State, _ input: sluice_text, _ answer: Sink, _ body: (Instance, PluginValue) throws -> PluginValue?
) -> sluice_status {
    unsafe run(state, answer) { instance in try body(instance, try PluginValue(parsing: unsafe input.bytes)) }
}

/// Runs one hook. Returns `SLUICE_DENY` if the plugin denies, and `SLUICE_FAILED` for every other error.
private func run(_ state: State, _ answer: Sink, _ body: (Instance) throws -> PluginValue?) -> sluice_status {
    guard let state = unsafe state else { return SLUICE_FAILED }
    let instance = unsafe Unmanaged<Instance>.fromOpaque(state).takeUnretainedValue()
    do {
        if let output = try body(instance) { unsafe answer.pointee.append(output.json) }
        return SLUICE_OK
    } catch let denial as PluginDenial {
        unsafe answer.pointee.append(denial.reason)
        return SLUICE_DENY
    } catch {
        unsafe answer.pointee.append("\(error)")
        return SLUICE_FAILED
    }
}

/// Returns the plugin as an implementation of a hook. The table contains only hooks that it implements.
private func hook<Hook>(_ instance: Instance, _: Hook.Type) throws -> Hook {
    guard let hook = instance.plugin as? Hook else { throw PluginDenial("the plugin lacks this hook") }
    return hook
}

func configureHook(state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        let warnings = try instance.plugin.configure(try AppConfiguration(input))
        return warnings.isEmpty ? nil : ["warnings": .array(warnings.map { .string($0) })]
    }
}

func openSessionHook(state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        let plan = try hook(instance, (any SessionRules).self)
            .openSession(user: try PluginUser(input["user"]), types: try input.names("types"))
        let types = plan.sorted { $0.key < $1.key }.map { PluginValue.Member($0.key, $0.value.value) }
        return ["types": .object(types)]
    }
}

func checkSubscriptionHook(
    state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        let queries = try input.list("queries").map { try PluginQuery($0) }
        let narrowed = try hook(instance, (any SubscriptionRules).self)
            .checkSubscription(user: try PluginUser(input["user"]), queries: queries)
        return narrowed.isEmpty ? nil : ["queries": .array(narrowed.map(\.value))]
    }
}

func checkWriteHook(
    state: UnsafeMutableRawPointer?, writes: UnsafePointer<sluice_writes>, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe run(state, answer) { instance in
        let answer = try unsafe lend(writes) { batch in try unsafe check(writes, in: batch, instance) }
        return answer.allowsAll ? .object([.init("writes", "allow")]) : answer.value
    }
}

/// Lends the rows of a batch to a plugin for the duration of `body`.
private func lend<R>(_ writes: UnsafePointer<sluice_writes>, _ body: (RowBatch) throws -> R) throws -> R {
    let lent = unsafe UnsafeRawBufferPointer(start: writes.pointee.arena, count: writes.pointee.arena_length)
    var batch = unsafe RowBatch(lending: lent)
    // If the plugin has retained rows, the batch must copy them before the gateway's memory becomes invalid.
    defer { if !isKnownUniquelyReferenced(&batch) { batch.keep() } }
    return try body(batch)
}

/// A function of its own, so that this module holds no reference to the batch when it returns.
@inline(never)
private func check(_ writes: UnsafePointer<sluice_writes>, in batch: RowBatch, _ instance: Instance) throws -> WriteAnswer {
    let user = unsafe try instance.user(unsafe UnsafeRawBufferPointer(start: writes.pointee.user.data, count: writes.pointee.user.length))
    let writes = unsafe instance.writes(writes, in: batch)
    let verdicts = try hook(instance, (any WriteRules).self).checkWrites(user: user, writes: writes)
    let kept = try (instance.plugin as? any RecordingWriteRules)?.records(user: user, writes: writes, verdicts: verdicts) ?? []
    return WriteAnswer(verdicts: verdicts, records: kept, isWhole: verdicts.count == writes.count)
}

/// A plugin's answer to a batch of writes.
private struct WriteAnswer {
    var verdicts: [WriteVerdict]
    var records: [PluginRecord]
    /// `true` if the number of verdicts equals that of writes.
    var isWhole: Bool

    var allowsAll: Bool { isWhole && records.isEmpty && verdicts.allSatisfy { $0 == .allow } }

    var value: PluginValue {
        var members = [PluginValue.Member("writes", .array(verdicts.map(\.value)))]
        if !records.isEmpty { members.append(.init("records", .array(records.map(\.value)))) }
        return .object(members)
    }
}

func ingestHook(
    state: UnsafeMutableRawPointer?, objects: UnsafePointer<sluice_writes>, answer: UnsafePointer<sluice_sink>
) -> sluice_status {
    unsafe run(state, answer) { instance in
        let answer = try unsafe lend(objects) { batch in try unsafe ingest(objects, in: batch, instance) }
        return answer.acceptsAll ? .object([.init("objects", "accept")]) : answer.value
    }
}

/// A function of its own, so that this module holds no reference to the batch when it returns.
@inline(never)
private func ingest(_ objects: UnsafePointer<sluice_writes>, in batch: RowBatch, _ instance: Instance) throws -> IngestAnswer {
    guard unsafe objects.pointee.type_count > 0 else { throw PluginError(unusable: "type") }
    let type = unsafe String(decoding: sluice_type_at(objects, 0).pointee.name.bytes, as: UTF8.self)
    let objects = unsafe instance.writes(objects, in: batch).compactMap(\.after)
    let verdicts = try hook(instance, (any IngestRules).self).ingest(type: type, objects: objects)
    return IngestAnswer(verdicts: verdicts, isWhole: verdicts.count == objects.count)
}

/// A plugin's answer to a batch of asymmetric objects.
private struct IngestAnswer {
    var verdicts: [IngestVerdict]
    /// `true` if the number of verdicts equals that of objects.
    var isWhole: Bool

    var acceptsAll: Bool { isWhole && verdicts.allSatisfy { $0 == .accept } }
    var value: PluginValue { ["objects": .array(verdicts.map(\.value))] }
}

func callFunctionHook(state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        try hook(instance, (any FunctionHandler).self).callFunction(try PluginFunctionCall(input))
    }
}

func authenticateHook(state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        guard let payload = input["payload"] else { throw PluginError(unusable: "payload") }
        return try hook(instance, (any LoginHandler).self)
            .authenticate(payload: payload, requestID: try input.text("request_id")).value
    }
}

func userChangedHook(state: UnsafeMutableRawPointer?, input: sluice_text, answer: UnsafePointer<sluice_sink>) -> sluice_status {
    unsafe run(state, input, answer) { instance, input in
        try hook(instance, (any UserChangeRules).self).userChanged(try PluginUser(input["user"]))
        return nil
    }
}
