import Dispatch
import Foundation
import Synchronization
import Testing

@testable import SluiceSDK

/// The start of observations on a queue of their own.
@Suite struct ObservationStartTests {
    @Test func `an object that is deleted before its observation begins ends it`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Task.self]))
        let task = try realm.write { realm.create(Task.self) }
        let (queue, gone, told) = (DispatchQueue(label: "observer"), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // The observation can begin when the object is gone.
        queue.async { gone.wait() }
        let token = task.observe(on: queue) { (change: ObjectChange<Task>) in
            if case .deleted = change { told.signal() }
        }
        try realm.write { realm.delete(task) }
        gone.signal()
        #expect(told.wait(timeout: .now() + 60) == .success)
        #expect(!token.isValid)
    }
}

extension FileErrorTests {
    @Test func `an observation that cannot begin on its queue is told`() throws {
        let folder = try TemporaryFolder()
        let realm = try Realm(configuration: folder.configuration([Team.self]))
        let heard = Mutex<[String]>([])
        Realm.onFileError { error, url in heard.withLock { $0.append("\(error.code) \(url.path)") } }
        defer { Realm.onFileError(nil) }
        // The file is open without this class.
        let other = folder.configuration([Every.self])
        let (file, scheduler) = (realm.core.file, Scheduler.of(DispatchQueue(label: "observer")))
        #expect(file.coreToObserve(other, scheduler) == nil)
        #expect(heard.withLock { $0.contains("schemaMismatch \(file.path)") })
    }
}
