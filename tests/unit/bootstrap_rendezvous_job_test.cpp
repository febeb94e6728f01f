// The job of a rendezvous without sockets: who is told what, and in which order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/rendezvous_job.hpp"

namespace weft::bootstrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;

class RendezvousJobs : public ::testing::Test {
 protected:
  RendezvousJob make(std::uint32_t pe_count, std::optional<Pe> host = std::nullopt) {
    return {{.rendezvous = "here", .pe_count = pe_count, .timeout = 1s, .host = host},
            [this](Pe pe, const SharedFrame& frame) {
              FrameReader reader(kGatheredBytesMax);
              reader.append(*frame);
              told.emplace_back(pe.value, static_cast<Message>(reader.next()->type));
            }};
  }

  static BootstrapFrame frame(Message type, std::span<const std::byte> payload = {}) {
    return {.type = static_cast<std::uint16_t>(type),
            .payload = Blob(payload.begin(), payload.end())};
  }

  std::vector<std::pair<std::uint32_t, Message>> told;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lost;  // who was told of whom
};

TEST_F(RendezvousJobs, TheHostIsToldLast) {
  RendezvousJob job = make(3, Pe(0));
  for (std::uint32_t pe = 0; pe < 3; ++pe) {
    job.join(Pe(pe));
  }
  EXPECT_THAT(
      told, ElementsAre(Pair(1, Message::Start), Pair(2, Message::Start), Pair(0, Message::Start)));
}

TEST_F(RendezvousJobs, APeThatComesAfterTheFailureIsToldIt) {
  RendezvousJob job = make(2);
  job.note_exit(Pe(1), "exited with status 3");
  EXPECT_FALSE(job.failure()) << "nobody waits for it yet";
  job.join(Pe(0));
  EXPECT_THAT(job.failure()->what(), HasSubstr("PE 1 exited with status 3 before it joined"));
  EXPECT_EQ(job.first_lost(), Pe(1));
  told.clear();
  job.join(Pe(1));
  EXPECT_THAT(told, ElementsAre(Pair(1, Message::Abort)));
}

TEST_F(RendezvousJobs, WherePesGoOnEachLossIsNamed) {
  RendezvousJob job({.rendezvous = "here", .pe_count = 4, .timeout = 1s, .announces_losses = true},
                    [this](Pe pe, const SharedFrame& frame) {
                      FrameReader reader(kGatheredBytesMax);
                      reader.append(*frame);
                      const BootstrapFrame told_frame = *reader.next();
                      if (told_frame.type == static_cast<std::uint16_t>(Message::Lost)) {
                        lost.emplace_back(pe.value, FieldReader(told_frame.payload).u32());
                      }
                    });
  for (std::uint32_t pe = 0; pe < 4; ++pe) {
    job.join(Pe(pe));
  }
  job.note_closed(Pe(2));
  EXPECT_THAT(lost, ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2), Pair(3, 2)));
  lost.clear();
  job.note_closed(Pe(1));
  EXPECT_THAT(lost, ElementsAre(Pair(0, 1), Pair(1, 1), Pair(2, 1), Pair(3, 1)));
  EXPECT_EQ(job.first_lost(), Pe(2));
}

TEST_F(RendezvousJobs, TheDeadlineBeginsWithTheFirstPeAndNamesTheOthers) {
  RendezvousJob job = make(3);
  EXPECT_EQ(job.deadline(), Clock::time_point::max());
  job.join(Pe(1));
  job.check_deadline(job.deadline() - 1ns);
  EXPECT_FALSE(job.failure());
  job.check_deadline(job.deadline());
  EXPECT_EQ(job.failure()->status(), Status::Timeout);
  EXPECT_THAT(job.failure()->what(), HasSubstr("PEs 0, 2 did not come within 1 s"));
  EXPECT_EQ(job.deadline(), Clock::time_point::max());
}

TEST_F(RendezvousJobs, ARoundThatLastsNamesOnceWhomItWaitsFor) {
  RendezvousJob job({.rendezvous = "here", .pe_count = 3, .timeout = 60s},
                    [](Pe /*pe*/, const SharedFrame& /*frame*/) {});
  EXPECT_EQ(job.next_check(), Clock::time_point::max());
  job.join(Pe(1));
  const Clock::time_point report_at = job.next_check();
  EXPECT_EQ(job.deadline() - report_at, 50s);
  ::testing::internal::CaptureStderr();
  job.check_deadline(report_at - 1ns);
  job.check_deadline(report_at);
  job.check_deadline(report_at + 1s);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("init has been waiting for PEs 0, 2 for 10 s; it fails after 60 s"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  EXPECT_EQ(job.next_check(), job.deadline());
  EXPECT_FALSE(job.failure());
}

TEST_F(RendezvousJobs, AFrameOutOfTurnIsAnError) {
  RendezvousJob job = make(1);
  job.join(Pe(0));
  const Blob wrong_round = FieldWriter().u32(7).bytes();
  EXPECT_THROW(job.handle(Pe(0), frame(Message::Gather, wrong_round)), Error);
  EXPECT_THROW(job.handle(Pe(0), frame(Message::Hello)), Error);
}

TEST_F(RendezvousJobs, APeThatHasLeftIsNotLostAndHearsNothingMore) {
  RendezvousJob job = make(2);
  job.join(Pe(0));
  job.join(Pe(1));
  told.clear();
  job.handle(Pe(1), frame(Message::Leave));
  job.note_closed(Pe(1));
  EXPECT_FALSE(job.failure());
  job.say_goodbye();
  EXPECT_THAT(told, ElementsAre(Pair(0, Message::Leave)));
}

TEST_F(RendezvousJobs, APeThatRestsMayCloseAndIsWaitedForUntilThen) {
  RendezvousJob job = make(2);
  job.join(Pe(0));
  job.join(Pe(1));
  EXPECT_EQ(job.rest_count(), 0U);
  job.handle(Pe(0), frame(Message::Rest));
  job.handle(Pe(1), frame(Message::Rest));
  EXPECT_EQ(job.rest_count(), 1U);
  EXPECT_EQ(job.resting_count(), 2U);
  job.handle(Pe(0), frame(Message::Gather, FieldWriter().u32(1).bytes()));
  EXPECT_EQ(job.resting_count(), 1U) << "PE 0 has begun again";
  EXPECT_FALSE(job.failure()) << "PE 1 may still come";
  job.note_closed(Pe(1));
  EXPECT_THAT(job.failure()->what(),
              HasSubstr("PE 1 has left the job (it finalized) while 1 of 2"));
  EXPECT_FALSE(job.first_lost());
}

TEST_F(RendezvousJobs, APeThatCouldNotStartSaysWhy) {
  RendezvousJob job = make(2);
  job.join(Pe(0));
  job.join(Pe(1));
  const std::string why = "no NIC can be a rail";
  const auto words = std::as_bytes(std::span(why));
  job.handle(Pe(1), frame(Message::Leave, {words.begin(), words.end()}));
  job.handle(Pe(0), frame(Message::Gather, FieldWriter().u32(1).bytes()));
  EXPECT_THAT(
      job.failure()->what(),
      HasSubstr("PE 1 has left the job (it could not start: no NIC can be a rail) while 1"));
}

TEST_F(RendezvousJobs, APeThatClosesInTheNextJobIsLost) {
  RendezvousJob job = make(2);
  for (const std::uint32_t pe : {0U, 1U}) {
    job.join(Pe(pe));
    job.handle(Pe(pe), frame(Message::Rest));
  }
  for (const std::uint32_t pe : {0U, 1U}) {
    job.handle(Pe(pe), frame(Message::Gather, FieldWriter().u32(1).bytes()));
  }
  job.note_closed(Pe(1));
  EXPECT_EQ(job.first_lost(), Pe(1));
}

TEST_F(RendezvousJobs, TheFirstEndStatusWins) {
  RendezvousJob job = make(2);
  job.join(Pe(0));
  job.join(Pe(1));
  job.handle(Pe(0), frame(Message::End, FieldWriter().u32(5).bytes()));
  job.handle(Pe(1), frame(Message::End, FieldWriter().u32(6).bytes()));
  EXPECT_EQ(job.end_status(), 5);
  told.clear();
  job.note_closed(Pe(0));
  EXPECT_FALSE(job.failure()) << "its closing is part of the end";
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace weft::bootstrap
